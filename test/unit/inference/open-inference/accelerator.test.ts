import { mkdtemp, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { createOpenInferenceAccelerator } from '../../../../src/inference/open-inference/accelerator.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';
import type { Accelerator, ItemResult } from '../../../../src/ports/accelerator.ts';
import type { Clock } from '../../../../src/ports/clock.ts';
import { toyFiles, toyGraph, toyItem, toyRequest, toyScores, writeVersion } from '../toy-model.ts';
import { fail, type ProtocolServer, type ProtocolServerOptions, protocolServer } from './http-server.ts';

const clock = systemClock();
const request = toyRequest(3, 4, 2);
let folder: string;
let server: ProtocolServer | undefined;
let accelerator: Accelerator | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-served-'));
  await writeVersion(folder, toyFiles());
});

afterEach(async () => {
  await accelerator?.close();
  await server?.close();
  server = undefined;
  await rm(folder, { recursive: true });
});

const served = (graph = toyGraph(), options: ProtocolServerOptions = {}): Promise<ProtocolServer> =>
  protocolServer([{ name: 'toy', version: '1', graph }], options);

async function connect(
  url: string,
  names: { modelName?: string; modelVersion?: string } = {},
  timeoutMs = 5_000,
  time: Clock = clock,
) {
  const repository = await openRepository(folder);
  accelerator = createOpenInferenceAccelerator(
    { repository, clock: time },
    {
      protocol: 'http',
      url,
      protoFile: '',
      modelName: '{family}',
      modelVersion: '{version}',
      kernels: ['dense'],
      memories: ['host'],
      timeoutMs,
      ...names,
    },
  );
  return accelerator;
}

async function load(options: ProtocolServerOptions = {}) {
  server = await served(toyGraph(), options);
  const model = await (await connect(server.url)).load('toy', '1');
  server.seen.length = 0;
  return { model, server };
}

function expectScored([result]: readonly ItemResult[]): void {
  expect(result?.status).toBe('scored');
  if (result?.status !== 'scored') return;
  const wanted = toyScores(request).scores;
  for (const [n, score] of result.scores.scores.entries())
    expect(score).toBeCloseTo(wanted[n] ?? Number.NaN, 4);
}

describe('loading', () => {
  it.each([
    ['as bytes', {}, true],
    ['in JSON where the server answers bytes with HTTP 500', { form: 'json-only' }, false],
    ['in JSON where it is written in rows', { form: 'json-only', nested: true }, false],
  ] as const)('finds that tensors travel %s', async (_, options, binary) => {
    const { model, server } = await load(options);
    expectScored((await model.run([toyItem(request)], 'dense')).items);
    expect(server.seen).toMatchObject([{ path: '/v2/models/toy/versions/1/infer', binary }]);
  });

  it("uses the server's names", async () => {
    server = await protocolServer([{ name: 'prod-toy', version: 'v1-a', graph: toyGraph() }]);
    const model = await (
      await connect(server.url, { modelName: 'prod-{family}', modelVersion: 'v{version}-a' })
    ).load('toy', '1');
    expectScored((await model.run([toyItem(request)], 'dense')).items);
  });

  it.each([
    ['waits until the server is ready', [400, 503], 3],
    ['asks a server that tells nothing of its health only once', [404], 1],
  ] as const)('%s', async (_, notReady, questions) => {
    const fetched = vi.spyOn(globalThis, 'fetch');
    const { model } = await load({ notReady });
    const asked = fetched.mock.calls.filter(([url]) => String(url).endsWith('/v2/health/ready'));
    fetched.mockRestore();
    expect(asked).toHaveLength(questions);
    expectScored((await model.run([toyItem(request)], 'dense')).items);
  });

  it.each([400, 503])(
    'takes a model of a server that goes on answering HTTP %i for its health',
    async (status) => {
      server = await served(toyGraph(), { notReady: Array.from({ length: 1_000 }, () => status) });
      const model = await (await connect(server.url, {}, 300)).load('toy', '1');
      expectScored((await model.run([toyItem(request)], 'dense')).items);
    },
  );

  it('does not take a server that was away for one that takes no bytes', async () => {
    server = await served();
    server.failNext(
      ...Array.from({ length: 20 }, () => (response: ServerResponse) => fail(response, 503, 'away')),
    );
    await expect((await connect(server.url, {}, 300)).load('toy', '1')).rejects.toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      message: expect.stringMatching(/HTTP 503: away|in time/),
    });
    expect(server.seen.every(({ binary }) => binary)).toBe(true);
  });

  it('refuses a server that makes batches too for good', async () => {
    server = await served(toyGraph(), { batchSizeMax: 8 });
    await expect((await connect(server.url)).load('toy', '1')).rejects.toMatchObject({
      code: 'INVALID_MODEL',
      retryable: false,
      message: expect.stringMatching(/the server makes batches too.*max_batch_size: 8/),
    });
  });

  it.each<[string, { name?: string; version?: string }, RegExp]>([
    ['that has not loaded the model yet', { name: 'other' }, /toy\/1: .*HTTP 404: unknown model/],
    ['that has not loaded the version yet', { version: '7' }, /toy\/1: .*HTTP 404: unknown model/],
  ])('may come to a server %s', async (_, other, reason) => {
    server = await protocolServer([{ name: 'toy', version: '1', graph: toyGraph(), ...other }]);
    const { url } = server;
    const { load } = await connect(url);
    await expect(load('toy', '1')).rejects.toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      retryable: true,
      message: expect.stringMatching(reason),
    });
    await server.close();
    server = await served(toyGraph(), { port: Number(new URL(url).port) });
    expectScored((await (await load('toy', '1')).run([toyItem(request)], 'dense')).items);
  });

  it('may come to a server that fails on its golden cases', async () => {
    server = await served();
    // once as bytes and once in JSON
    const outOfMemory = (response: ServerResponse): void => fail(response, 500, 'out of memory');
    server.failNext(outOfMemory, outOfMemory);
    const { load } = await connect(server.url);
    await expect(load('toy', '1')).rejects.toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      message: expect.stringMatching(/toy\/1: the server fails on it: .*HTTP 500: out of memory/),
    });
    expectScored((await (await load('toy', '1')).run([toyItem(request)], 'dense')).items);
  });

  it('holds nothing against a version while its model is being loaded, though the server makes batches', async () => {
    server = await served(toyGraph(), { batchSizeMax: 8, loadsAfter: 1 });
    await expect((await connect(server.url)).load('toy', '1')).rejects.toMatchObject({
      code: 'MODEL_UNAVAILABLE',
    });
  });

  it('refuses a graph that takes something else for good', async () => {
    server = await served(
      Buffer.from(Buffer.from(toyGraph()).toString('latin1').replaceAll('segment', 'section'), 'latin1'),
    );
    await expect((await connect(server.url)).load('toy', '1')).rejects.toMatchObject({
      code: 'INVALID_MODEL',
      retryable: false,
      message: expect.stringMatching(/the graph has no input segment/),
    });
  });

  it('refuses a graph that computes something else', async () => {
    const graph = Buffer.from(toyGraph());
    const weights = Buffer.from(Float32Array.of(0.5, -1, 2, 0.25).buffer);
    Buffer.from(Float32Array.of(9, 9, 9, 9).buffer).copy(graph, graph.indexOf(weights));
    server = await served(graph);
    await expect((await connect(server.url)).load('toy', '1')).rejects.toMatchObject({
      code: 'INVALID_MODEL',
      message: expect.stringMatching(/golden case/),
    });
  });

  it('waits for nobody for longer than it may, says at which address, and takes the version once somebody answers', async () => {
    server = await served();
    const { url } = server;
    await server.close();
    server = undefined;
    const { load } = await connect(url, {}, 200);
    await expect(load('toy', '1')).rejects.toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      retryable: true,
      message: expect.stringMatching(/ECONNREFUSED/),
    });
    server = await served(toyGraph(), { port: Number(new URL(url).port) });
    const model = await vi.waitFor(() => load('toy', '1'), 10_000);
    expectScored((await model.run([toyItem(request)], 'dense')).items);
  });

  it('waits for a server that is away once for versions that are loaded one after another', async () => {
    server = await served();
    const { url } = server;
    await server.close();
    server = undefined;
    let laterMs = 0;
    let saidMs = 0;
    let isHeld = false;
    const monotonicMs = (): number => {
      if (!isHeld) saidMs = clock.monotonicMs() + laterMs;
      return saidMs;
    };
    const time = { ...clock, monotonicMs };
    const { load } = await connect(url, {}, 200, time);
    const fetched = vi.spyOn(globalThis, 'fetch');
    onTestFinished(() => fetched.mockRestore());
    const reason = (): Promise<unknown> => load('toy', '1').catch((error: unknown) => String(error));
    const first = await reason();
    const asked = fetched.mock.calls.length;
    expect(asked).toBeGreaterThan(0);
    // However long this machine takes over it, the next one comes at once.
    isHeld = true;
    expect([await reason(), fetched.mock.calls.length]).toEqual([first, asked]);
    isHeld = false;
    laterMs = 1_000;
    await reason();
    expect(fetched.mock.calls.length).toBeGreaterThan(asked);
  });
});

describe('running', () => {
  it('tells the server how much time is left', async () => {
    const { model, server } = await load();
    await model.run([toyItem(request)], 'dense', 'host', clock.monotonicMs() + 5_000);
    expect(server.seen[0]?.timeout).toBeGreaterThan(1_000_000);
    expect(server.seen[0]?.timeout).toBeLessThanOrEqual(5_000_000);
  });

  it.each<[string, Parameters<ProtocolServer['failNext']>[0]]>([
    ['that cannot compute just now', (response) => fail(response, 503, 'loading')],
    ['that was started again and has not loaded the model yet', (response) => fail(response, 404, 'unknown')],
    ['that closes the connection', (response) => void response.destroy()],
  ])('asks a server again %s', async (_, failure) => {
    const { model, server } = await load();
    server.failNext(failure, failure);
    expectScored((await model.run([toyItem(request)], 'dense', 'host', clock.monotonicMs() + 10_000)).items);
    expect(server.seen).toHaveLength(3);
  });

  it('gives up at the deadline where the server does not answer, and blames no request', async () => {
    const { model, server } = await load();
    server.failNext(() => undefined);
    const { items } = await model.run(
      [toyItem(request), toyItem(request)],
      'dense',
      'host',
      clock.monotonicMs() + 150,
    );
    expect(items).toMatchObject([
      {
        status: 'failed',
        error: { code: 'MODEL_FAILED', message: expect.stringMatching(/did not answer in time/) },
      },
      { status: 'failed', error: { code: 'MODEL_FAILED' } },
    ]);
    expect(server.seen).toHaveLength(1);
    expectScored((await model.run([toyItem(request)], 'dense', 'host', clock.monotonicMs() + 10_000)).items);
  });

  it('lets a request that the graph cannot take fail alone', async () => {
    const { model } = await load();
    const poison = toyItem({ ...request, segment: 99 });
    const { items } = await model.run(
      [toyItem(request), poison],
      'dense',
      'host',
      clock.monotonicMs() + 10_000,
    );
    expectScored(items);
    expect(items[1]).toMatchObject({ status: 'failed', error: { code: 'MODEL_FAILED' } });
    await expect(model.run([poison], 'dense', 'host', clock.monotonicMs() + 10_000)).rejects.toMatchObject({
      code: 'MODEL_FAILED',
    });
  });

  it('quotes the last words of a traceback, where the reason is', async () => {
    const { model, server } = await load();
    const traceback = `Traceback:\n${'  File "model.py", line 1\n'.repeat(50)}ValueError: no such segment`;
    server.failNext((response) => fail(response, 500, traceback));
    const failed = model.run([toyItem(request)], 'dense', 'host', clock.monotonicMs() + 10_000);
    await expect(failed).rejects.toMatchObject({
      message: expect.stringMatching(/HTTP 500: Traceback: .{1,300} ValueError: no such segment$/),
    });
  });

  it('takes no answer that is longer than it can be', async () => {
    const { model, server } = await load();
    server.failNext((response) => response.writeHead(200).end(Buffer.alloc(3_000_000, 32)));
    await expect(
      model.run([toyItem(request)], 'dense', 'host', clock.monotonicMs() + 10_000),
    ).rejects.toMatchObject({ message: expect.stringMatching(/more than \d+ bytes/) });
  });
});

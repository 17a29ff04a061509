import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { createOpenInferenceAccelerator } from '../../../../src/inference/open-inference/accelerator.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';
import type { Accelerator, ItemResult, LoadedModel, ScoreItem } from '../../../../src/ports/accelerator.ts';
import { toyFiles, toyGraph, toyItem, toyRequest, toyScores, writeVersion } from '../toy-model.ts';
import {
  type Answering,
  fails,
  type GrpcServer,
  type GrpcServerOptions,
  grpcServer,
  type InferAnswer,
  PROTO_FILE,
} from './grpc-server.ts';
import { protocolServer } from './http-server.ts';
import { type TcpProxy, tcpProxy } from './tcp-proxy.ts';
import { LOOPBACK_TLS } from './tls.fixture.ts';

const clock = systemClock();
const request = toyRequest(3, 4, 2);
const item = toyItem(request);
let folder: string;
let server: GrpcServer | undefined;
let proxy: TcpProxy | undefined;
let accelerator: Accelerator | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-served-'));
  await writeVersion(folder, toyFiles());
});

afterEach(async () => {
  await accelerator?.close();
  await proxy?.close();
  await server?.close();
  accelerator = proxy = server = undefined;
  await rm(folder, { recursive: true });
});

async function serve(options: GrpcServerOptions = {}, graph = toyGraph()): Promise<GrpcServer> {
  server = await grpcServer([{ name: 'toy', version: '1', graph }], options);
  return server;
}

async function connect(
  url: string,
  names: { modelName?: string; modelVersion?: string } = {},
  timeoutMs = 5_000,
): Promise<Accelerator> {
  accelerator = createOpenInferenceAccelerator(
    { repository: await openRepository(folder), clock },
    {
      protocol: 'grpc',
      url,
      protoFile: PROTO_FILE,
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

async function load(options: GrpcServerOptions = {}): Promise<{ model: LoadedModel; server: GrpcServer }> {
  const served = await serve(options);
  const model = await (await connect(served.url)).load('toy', '1');
  served.seen.length = 0;
  return { model, server: served };
}

/** Through a proxy, that can lose what is on its way. */
async function loadThroughProxy(): Promise<{ model: LoadedModel; server: GrpcServer; proxy: TcpProxy }> {
  const served = await serve();
  proxy = await tcpProxy(served.port);
  const model = await (await connect(`http://127.0.0.1:${proxy.port}`)).load('toy', '1');
  return { model, server: served, proxy };
}

const run = async (
  model: LoadedModel,
  items: readonly ScoreItem[] = [item],
  withinMs = 10_000,
): Promise<readonly ItemResult[]> =>
  (await model.run(items, 'dense', 'host', clock.monotonicMs() + withinMs)).items;

function expectScored([result]: readonly ItemResult[]): void {
  expect(result?.status).toBe('scored');
  if (result?.status !== 'scored') return;
  const wanted = toyScores(request).scores;
  for (const [n, score] of result.scores.scores.entries())
    expect(score).toBeCloseTo(wanted[n] ?? Number.NaN, 4);
}

const MODEL_FAILED = (reason: RegExp): object => ({
  code: 'MODEL_FAILED',
  message: expect.stringMatching(reason),
});
const UNANSWERED: Answering = () => undefined;

/** Computes, and then says something else. */
const distorted =
  (distort: (answer: InferAnswer) => object): Answering =>
  (respond, outputs) =>
    void outputs().then((answer) => respond(null, distort(answer)));

describe('loading', () => {
  it.each([
    ['as raw contents', {}, true],
    ['as typed contents where the server refuses raw ones', { form: 'typed-only' }, false],
  ] as const)('finds that tensors travel %s, and asks no more', async (_, options, raw) => {
    const { model, server } = await load(options);
    for (let n = 0; n < 2; n += 1) expectScored(await run(model));
    expect(server.seen).toMatchObject([
      { model: 'toy', version: '1', raw },
      { model: 'toy', version: '1', raw },
    ]);
  });

  it("uses the server's names", async () => {
    server = await grpcServer([{ name: 'prod-toy', version: 'v1-a', graph: toyGraph() }]);
    const names = { modelName: 'prod-{family}', modelVersion: 'v{version}-a' };
    expectScored(await run(await (await connect(server.url, names)).load('toy', '1')));
  });

  it('names no version where none is set', async () => {
    server = await grpcServer([{ name: 'toy', version: '', graph: toyGraph() }]);
    expectScored(await run(await (await connect(server.url, { modelVersion: '' })).load('toy', '1')));
  });

  it.each<[string, GrpcServerOptions['notReady'], number]>([
    ['waits until the server is ready', ['no', status.UNAVAILABLE], 3],
    ['asks a server that tells nothing of its health only once', [status.UNIMPLEMENTED], 1],
  ])('%s', async (_, notReady = [], questions) => {
    const { model, server } = await load({ notReady });
    expect(server.asked).toBe(questions);
    expectScored(await run(model));
  });

  it.each(['no', status.UNAVAILABLE] as const)(
    'takes a model of a server that goes on saying %s to whether it is ready',
    async (answer) => {
      const served = await serve({ notReady: Array.from({ length: 1_000 }, () => answer) });
      expectScored(await run(await (await connect(served.url, {}, 500)).load('toy', '1')));
    },
  );

  it('does not take a server that was away for one that takes no raw contents', async () => {
    const served = await serve();
    served.failNext(...Array.from({ length: 50 }, () => fails(status.UNAVAILABLE, 'away')));
    await expect((await connect(served.url, {}, 500)).load('toy', '1')).rejects.toMatchObject({
      message: expect.stringMatching(/UNAVAILABLE: away|in time/),
    });
    expect(served.seen.length).toBeGreaterThan(0);
    expect(served.seen.every(({ raw }) => raw)).toBe(true);
  });

  it.each<[string, Parameters<typeof connect>[1], GrpcServerOptions, string, RegExp]>([
    [
      'for now a model that the server lacks',
      { modelName: 'other' },
      {},
      'MODEL_UNAVAILABLE',
      /gRPC NOT_FOUND: unknown model other\/1/,
    ],
    [
      'a server that makes batches too',
      {},
      { batchSizeMax: 8 },
      'INVALID_MODEL',
      /the server makes batches too.*max_batch_size: 8/,
    ],
  ])('refuses %s', async (_, names, options, code, reason) => {
    const served = await serve(options);
    await expect((await connect(served.url, names)).load('toy', '1')).rejects.toMatchObject({
      code,
      message: expect.stringMatching(reason),
    });
  });

  it('refuses a graph that computes something else', async () => {
    const graph = Buffer.from(toyGraph());
    const weights = Buffer.from(Float32Array.of(0.5, -1, 2, 0.25).buffer);
    Buffer.from(Float32Array.of(9, 9, 9, 9).buffer).copy(graph, graph.indexOf(weights));
    const served = await serve({}, graph);
    await expect((await connect(served.url)).load('toy', '1')).rejects.toMatchObject({
      code: 'INVALID_MODEL',
      message: expect.stringMatching(/golden case/),
    });
  });

  it('refuses while nobody answers, with the reason, and takes the version once somebody does', async () => {
    const served = await serve();
    await served.close();
    const { load } = await connect(served.url, {}, 500);
    await expect(load('toy', '1')).rejects.toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      message: expect.stringMatching(/ECONNREFUSED/),
    });
    await serve({ port: served.port });
    const model = await vi.waitFor(() => load('toy', '1'), 10_000);
    expectScored(await run(model));
  });

  it('refuses where HTTP is spoken, and says so', async () => {
    const http = await protocolServer([{ name: 'toy', version: '1', graph: toyGraph() }]);
    onTestFinished(() => http.close());
    await expect((await connect(http.url, {}, 500)).load('toy', '1')).rejects.toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      message: expect.stringMatching(/speaks no gRPC/),
    });
  });
});

describe('over TLS', () => {
  it('takes a server whose certificate is trusted', async () => {
    const trusted = getCACertificates('default');
    setDefaultCACertificates([...trusted, LOOPBACK_TLS.cert]);
    onTestFinished(() => setDefaultCACertificates(trusted));
    const { model, server } = await load({ tls: LOOPBACK_TLS });
    expect(server.url).toMatch(/^https:/);
    expectScored(await run(model));
  });

  it('refuses one whose certificate is not', async () => {
    const served = await serve({ tls: LOOPBACK_TLS });
    await expect((await connect(served.url, {}, 500)).load('toy', '1')).rejects.toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      message: expect.stringMatching(/self-signed certificate/),
    });
    expect(served.asked).toBe(0);
  });
});

describe('running', () => {
  it('gives the time that is left as the deadline of the call, and as Triton reads it', async () => {
    const { model, server } = await load();
    await run(model, [item], 5_000);
    const [{ leftMs, timeout } = { leftMs: 0, timeout: 0 }] = server.seen;
    for (const left of [leftMs, timeout / 1_000]) {
      expect(left).toBeGreaterThan(1_000);
      expect(left).toBeLessThanOrEqual(5_001);
    }
  });

  it.each<[string, Answering]>([
    ['that cannot compute just now', fails(status.UNAVAILABLE, 'loading')],
    ['that has too much to do', fails(status.RESOURCE_EXHAUSTED, 'queue is full')],
    ['that ends its calls when it stops', fails(status.CANCELLED, 'stopping')],
    ['that was started again and has not loaded the model yet', fails(status.NOT_FOUND, 'unknown')],
  ])('asks a server again %s', async (_, failure) => {
    const { model, server } = await load();
    server.failNext(failure, failure);
    expectScored(await run(model));
    expect(server.seen).toHaveLength(3);
  });

  it('asks a server again whose connection is cut in the middle of a call', async () => {
    const { model, server, proxy } = await loadThroughProxy();
    server.failNext(() => proxy.cut());
    expectScored(await run(model));
  });

  it('asks a server again that went away in the middle of a call, and came back', async () => {
    const { model, server: first } = await load();
    let gone: Promise<void> | undefined;
    first.failNext(() => {
      gone = first.close();
    });
    const answered = run(model);
    await expect.poll(() => gone !== undefined, { timeout: 10_000 }).toBe(true);
    await gone;
    await serve({ port: first.port });
    expectScored(await answered);
  });

  it('blames no request for a server that went away and stays away', async () => {
    const { model, server } = await load();
    server.failNext(() => void server.close());
    const items = await run(model, [item, item], 500);
    const error = MODEL_FAILED(/ECONNREFUSED|UNAVAILABLE|in time/);
    expect(items).toMatchObject([
      { status: 'failed', error },
      { status: 'failed', error },
    ]);
  });

  it('gives up at the deadline where the server does not answer, and blames no request', async () => {
    const { model, server } = await load();
    server.failNext(UNANSWERED);
    expect(await run(model, [item, item], 150)).toMatchObject([
      { status: 'failed', error: MODEL_FAILED(/did not answer in time/) },
      { status: 'failed', error: { code: 'MODEL_FAILED' } },
    ]);
    expect(server.seen).toHaveLength(1);
    expectScored(await run(model));
  });

  it('takes another connection where one leads nowhere', async () => {
    const { model, proxy } = await loadThroughProxy();
    const other = accelerator;
    onTestFinished(() => other?.close());
    // Of the same process: its connection is its own.
    await (await connect(`http://127.0.0.1:${proxy.port}`)).load('toy', '1');
    expectScored(await run(model));
    proxy.goSilent();
    const before = proxy.connections;
    expect(await run(model, [item], 200)).toMatchObject([
      { status: 'failed', error: MODEL_FAILED(/did not answer in time/) },
    ]);
    expectScored(await run(model));
    expect(proxy.connections).toBe(before + 1);
  });

  it('lets a call that is under way end, where another had no answer on its connection', async () => {
    const { model, server } = await load();
    let release = (): void => undefined;
    server.failNext((respond, outputs) => {
      release = () => void outputs().then((answer) => respond(null, answer));
    }, UNANSWERED);
    const patient = run(model);
    await expect.poll(() => server.seen.length, { timeout: 10_000 }).toBe(1);
    expect(await run(model, [item], 150)).toMatchObject([{ status: 'failed' }]);
    expectScored(await run(model));
    release();
    expectScored(await patient);
    expect(server.seen).toHaveLength(3);
  });

  it('lets a request that the graph cannot take fail alone', async () => {
    const { model } = await load();
    const poison = toyItem({ ...request, segment: 99 });
    const items = await run(model, [item, poison]);
    expectScored(items);
    expect(items[1]).toMatchObject({ status: 'failed', error: { code: 'MODEL_FAILED' } });
    await expect(run(model, [poison])).rejects.toMatchObject(MODEL_FAILED(/gRPC INTERNAL: .*idx=99/));
  });

  it('lets a request alone fail whose score is not finite', async () => {
    const { model, server } = await load();
    server.failNext(
      distorted(({ outputs, raw_output_contents: raw }) => {
        for (const contents of raw) contents.writeFloatLE(Number.NaN, 0);
        return { outputs, raw_output_contents: raw };
      }),
    );
    const items = await run(model, [item, item]);
    expect(items[0]).toMatchObject({ status: 'failed', error: { code: 'NON_FINITE' } });
    expectScored(items.slice(1));
  });

  it.each<[string, (answer: InferAnswer) => object, RegExp]>([
    [
      'of another shape',
      ({ outputs, ...rest }) => ({ ...rest, outputs: outputs.map((one) => ({ ...one, shape: [2, 2] })) }),
      /has shape \[2, 2\], not \[4\]/,
    ],
    [
      'of another datatype',
      ({ outputs, ...rest }) => ({ ...rest, outputs: outputs.map((one) => ({ ...one, datatype: 'FP16' })) }),
      /is FP16, not FP32/,
    ],
    [
      'with fewer values',
      ({ raw_output_contents: raw, ...rest }) => ({
        ...rest,
        raw_output_contents: raw.map((contents) => contents.subarray(4)),
      }),
      /has 3 values, not 4/,
    ],
    ['without an output', () => ({ outputs: [], raw_output_contents: [] }), /the answer lacks/],
    [
      'that is longer than it can be',
      (answer) => ({ ...answer, model_name: 'x'.repeat(3_000_000) }),
      /RESOURCE_EXHAUSTED: .*larger than/,
    ],
  ])('takes no answer %s', async (_, distort, reason) => {
    const { model, server } = await load();
    server.failNext(distorted(distort));
    await expect(run(model)).rejects.toMatchObject(MODEL_FAILED(reason));
    expect(server.seen).toHaveLength(1);
    expectScored(await run(model));
  });

  it('does not ask again where a message is too long for the server', async () => {
    const { model, server } = await load();
    const refusal = 'SERVER: Received message larger than max (5 vs. 4)';
    server.failNext(fails(status.RESOURCE_EXHAUSTED, refusal));
    await expect(run(model)).rejects.toMatchObject(MODEL_FAILED(/RESOURCE_EXHAUSTED: .*larger than max/));
    expect(server.seen).toHaveLength(1);
  });

  it('ends what is under way when it is closed', async () => {
    const { model, server } = await load();
    server.failNext(UNANSWERED);
    const answered = run(model);
    await expect.poll(() => server.seen.length, { timeout: 10_000 }).toBe(1);
    await accelerator?.close();
    expect(await answered).toMatchObject([
      { status: 'failed', error: MODEL_FAILED(/the accelerator is closed/) },
    ]);
  });
});

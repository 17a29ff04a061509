import { realpathSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { parseRequest } from '../../src/cli/request-file.ts';
import { connect } from '../../src/client/client.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import { readUserFile } from '../../src/config/user-file.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { checkGolden } from '../../src/inference/golden-check.ts';
import { createOnnxCpuAccelerator } from '../../src/inference/onnx-cpu/accelerator.ts';
import { createOpenInferenceAccelerator } from '../../src/inference/open-inference/accelerator.ts';
import { GrpcClient } from '../../src/inference/open-inference/grpc-client.ts';
import { HttpClient } from '../../src/inference/open-inference/http-client.ts';
import type { ServedModel } from '../../src/inference/open-inference/protocol-client.ts';
import { OpenInferenceServer, type ServerOptions } from '../../src/inference/open-inference/server.ts';
import type { TensorForm } from '../../src/inference/open-inference/tensors.ts';
import { type ModelRepository, openRepository } from '../../src/inference/repository/open-repository.ts';
import type { Accelerator, ItemResult, LoadedModel, ScoreItem } from '../../src/ports/accelerator.ts';
import { embeddedTransport } from '../../src/wiring/embedded-transport.ts';
import { rankerItem, scoresOf } from '../conformance/accelerator.fixture.ts';
import { describeAccelerator } from '../conformance/accelerator.suite.ts';
import { temporaryFolder } from '../unit/cli/temporary-folder.ts';
import { buildTable, TABLE, textIds } from '../unit/inference/items/table.fixture.ts';
import { PROTO_FILE } from '../unit/inference/open-inference/grpc-server.ts';
import { toyFiles, toyItem, toyRequest, toyScores, writeVersion } from '../unit/inference/toy-model.ts';
import type { ServerName } from './environments.ts';
import { type RealServer, startRealServer } from './real-server.ts';

type Protocol = ServerOptions['protocol'];

/** What a server does over one of the protocols. */
export interface ServedOver {
  /** The form that a worker finds, and every form that the server takes and gives. */
  form: TensorForm;
  forms: readonly TensorForm[];
  /** Whether it looks at the version that a request names: where it does not, any will do. */
  readsVersions: boolean;
  /** What it says of a request that the graph cannot take. */
  refusal: RegExp;
}

export interface ServerUnderTest {
  name: ServerName;
  /** How a worker's settings name its models; `{family}` and `{version}` stand for ours. */
  modelName: string;
  modelVersion: string;
  over: Readonly<Record<Protocol, ServedOver>>;
  /** How it names each model, for the question whether it is ready. */
  paths: readonly string[];
  /** Whether it is started again in a test, which takes long: Triton alone answers before it has its models. */
  restarts: boolean;
  /** Whether it is killed in a test: what PyTriton started would outlive it. */
  isKilled: boolean;
}

const PROTOCOLS: readonly Protocol[] = ['http', 'grpc'];
const CLIENTS = { http: HttpClient, grpc: GrpcClient } as const;
/** What is said of a model or version that is not there. */
const LACKING: Readonly<Record<Protocol, RegExp>> = {
  http: /HTTP (4\d\d|501): \w+/,
  grpc: /gRPC (NOT_FOUND|INVALID_ARGUMENT|UNAVAILABLE): \w+/,
};
const FAMILIES = ['toy', 'ranker'] as const;
const clock = systemClock();
/** A model that is not there may come yet, where a server says so: then that is waited for. */
const REFUSED_WITHIN_MS = 2_000;
/** Far more than a call needs on a busy machine. */
const PATIENCE_MS = 30_000;
const TOLERANCE = 1e-5;
/** What servers/graphs.py takes a second and a half for. */
const SLOW_USER = [4096, 0, 0];

/** What the backend owes to a worker, on a server that others wrote. */
export function describeServer(subject: ServerUnderTest): void {
  let server: RealServer;
  let repository: ModelRepository;

  beforeAll(async () => {
    server = await startRealServer(subject.name, subject.paths);
    repository = await openRepository(server.models);
  });
  afterAll(async () => {
    await server?.close();
  });

  describe.each(PROTOCOLS)('over %s', (protocol) => {
    describeProtocol(subject, protocol, () => ({ server, repository }));
  });
}

type Started = { server: RealServer; repository: ModelRepository };

function describeProtocol(subject: ServerUnderTest, protocol: Protocol, started: () => Started): void {
  const over = subject.over[protocol];
  const options = (): ServerOptions => ({
    protocol,
    url: started().server.urls[protocol],
    protoFile: PROTO_FILE,
    timeoutMs: PATIENCE_MS,
  });
  const open = (
    models: ModelRepository,
    names: Partial<ServerUnderTest> = {},
    timeoutMs = PATIENCE_MS,
  ): Accelerator => {
    const { modelName, modelVersion } = { ...subject, ...names };
    return createOpenInferenceAccelerator(
      { repository: models, clock },
      { ...options(), kernels: ['dense'], memories: ['host'], timeoutMs, modelName, modelVersion },
    );
  };

  describeAccelerator({
    backend: 'open-inference',
    simulated: false,
    create: async (models) => open(models),
    tellsShapes: true,
    readsTensors: true,
  });

  describe('a model', () => {
    it.each(over.forms.flatMap((form) => FAMILIES.map((family) => [form, family] as const)))(
      'with tensors as %s holds every golden case of %s',
      async (form, family) => {
        const client = new OpenInferenceServer(options(), clock);
        const { repository } = started();
        const version = repository.version(family, '1');
        const golden = await repository.readGolden(version);
        const served = servedAs(subject, family);
        let calls = 0;
        await checkGolden(
          version,
          golden,
          (call) => {
            calls += 1;
            return client.infer(served, form, call);
          },
          (_, message) => new Error(message) as never,
        );
        expect(calls).toBe(golden.cases.length);
        client.close();
      },
    );

    it('is described as its graph is', async () => {
      const client = new OpenInferenceServer(options(), clock);
      await client.ready();
      const signature = await client.signature(servedAs(subject, 'toy'));
      expect(signature?.inputs).toEqual(
        expect.arrayContaining([
          { name: 'user', type: 'float32', shape: ['any', 3] },
          { name: 'segment', type: 'int64', shape: ['any'] },
          { name: 'history', type: 'float32', shape: ['any', 'any', 2] },
        ]),
      );
      expect(signature?.outputs.map(({ name }) => name).sort()).toEqual(['click', 'match']);
      client.close();
    });

    it.each([
      ['model', { modelName: 'nobody' }],
      ...(over.readsVersions ? [['version', { modelVersion: '999' }] as const] : []),
    ] as const)('is refused where the server has no such %s', async (_, names) => {
      const accelerator = open(started().repository, names, REFUSED_WITHIN_MS);
      await expect(accelerator.load('toy', '1')).rejects.toMatchObject({
        code: 'MODEL_UNAVAILABLE',
        message: expect.stringMatching(LACKING[protocol]),
      });
      await accelerator.close();
    });

    it('gives the scores that onnx-cpu gives, for any number of candidates and with or without a history', async () => {
      const { repository } = started();
      const accelerator = open(repository);
      const cpu = createOnnxCpuAccelerator({ repository, clock }, { intraOpThreads: 1 });
      const [served, local] = [await accelerator.load('ranker', '1'), await cpu.load('ranker', '1')];
      for (const items of BATCHES) {
        const [got, want] = [await served.run(items, 'dense'), await local.run(items, 'dense')];
        expectSame(got.items, want.items);
      }
      await accelerator.close();
      await cpu.close();
    });
  });

  it('scores candidates that are sent as ids of BYTES: their rows are looked up here, and travel as FP32', async () => {
    const root = realpathSync(temporaryFolder().path('.'));
    const files = toyFiles();
    const inputs = files.config.inputs.map((input) =>
      input['name'] === 'item' ? { ...input, table: { name: TABLE, unknown: 'reject' } } : input,
    );
    await writeVersion(root, { ...files, config: { ...files.config, inputs } });
    const request = toyRequest(3, 4, 0);
    const ids = request.items.map((_, n) => `item-${n}`);
    await buildTable({ root, folder: 'toy/1', table: TABLE }, { ids, rows: request.items });
    const accelerator = open(await openRepository(root));
    const model = await accelerator.load('toy', '1');
    const item = { ...toyItem(request), candidateTensors: [], candidateIds: textIds(ids) };
    const [result] = (await model.run([item], 'dense')).items;
    expect([...scoresOf(result).scores]).toEqual(
      toyScores(request).scores.map((score) => expect.closeTo(score, 5)),
    );
    await accelerator.close();
  });

  describe('a worker', () => {
    let accelerator: Accelerator;
    let model: LoadedModel;

    beforeAll(async () => {
      accelerator = open(started().repository);
      model = await accelerator.load('toy', '1');
    });
    afterAll(async () => {
      await accelerator?.close();
    });

    const run = (items: readonly ScoreItem[], withinMs = PATIENCE_MS) =>
      model.run(items, 'dense', 'host', clock.monotonicMs() + withinMs);
    const good = toyItem(toyRequest(3, 4, 2));
    const slow = toyItem({ ...toyRequest(1, 2, 1), user: SLOW_USER });
    const poison = toyItem({ ...toyRequest(1, 2, 1), segment: 99 });

    it(`has found that tensors travel as ${over.form}, and asks no more`, async () => {
      const inferred = vi.spyOn(CLIENTS[protocol].prototype, 'infer');
      try {
        for (let n = 0; n < 2; n += 1) expect((await run([good])).items.map(statusOf)).toEqual(['scored']);
        expect(inferred.mock.calls.map(([, form]) => form)).toEqual([over.form, over.form]);
      } finally {
        inferred.mockRestore();
      }
    });

    it('waits no longer than to the deadline for a server that is slower, and blames no request', async () => {
      const { items } = await run([good, slow], 300);
      expect(items).toMatchObject([
        {
          status: 'failed',
          error: { code: 'MODEL_FAILED', message: expect.stringMatching(/in time|timed? ?out/i) },
        },
        { status: 'failed', error: { code: 'MODEL_FAILED' } },
      ]);
      expect((await run([good])).items.map(statusOf)).toEqual(['scored']);
    });

    it('lets a request that the graph cannot take fail alone, with the reason', async () => {
      expect((await run([good, poison])).items.map(statusOf)).toEqual(['scored', 'failed']);
      await expect(run([poison])).rejects.toMatchObject({
        code: 'MODEL_FAILED',
        message: expect.stringMatching(over.refusal),
      });
    });

    if (subject.isKilled) {
      it('loses no request to a server that is killed in the midst of a call, and started again', async () => {
        const { server } = started();
        const inferred = vi.spyOn(CLIENTS[protocol].prototype, 'infer');
        try {
          const answered = run([slow, good], 4 * PATIENCE_MS);
          await expect.poll(() => inferred.mock.calls.length, { timeout: PATIENCE_MS }).toBe(1);
          await server.process.kill();
          await server.process.start();
          expect((await answered).items.map(statusOf)).toEqual(['scored', 'scored']);
          expect(inferred.mock.calls.length).toBeGreaterThan(1);
        } finally {
          inferred.mockRestore();
        }
      });
    }

    if (subject.restarts) {
      it('loses no request to a server that is started again', async () => {
        const { server } = started();
        await server.process.stop();
        expect((await run([good, good], 300)).items.map(statusOf)).toEqual(['failed', 'failed']);
        const [{ items }] = await Promise.all([run([good], 4 * PATIENCE_MS), server.process.start()]);
        expect(items.map(statusOf)).toEqual(['scored']);
      });
    }
  });

  it('computes for a whole pipeline', async () => {
    const { server } = started();
    const { settings } = loadSettings(
      {},
      {
        fleet: 'examples/fleets/one-pool.yaml',
        policy: 'examples/policies/one-pool.yaml',
        models: server.models,
        'worker.backend': 'open-inference',
        'openInference.protocol': protocol,
        'openInference.url': server.urls[protocol],
        'openInference.modelName': subject.modelName,
        'openInference.modelVersion': subject.modelVersion,
      },
    );
    const transport = embeddedTransport(settings, { telemetry: silentTelemetry(), random: seededRandom(1) });
    const client = await connect({ transport });
    const file = readUserFile('examples/requests/ranker.json').toString();
    const request = parseRequest(JSON.parse(file), 'ranker');
    const result = await client.score({ ...request, deadlineMs: PATIENCE_MS });
    expect(result).toMatchObject({ outcome: 'SCORED', modelVersion: '1' });
    await client.close();
  });
}

/** Requests of 1, 3, 0, 200 candidates, with and without a history, alone and together. */
const BATCHES: readonly (readonly ScoreItem[])[] = [
  [rankerItem(1, 1, 5)],
  [rankerItem(2, 3, 0)],
  [rankerItem(3, 0, 2)],
  [rankerItem(4, 200, 64), rankerItem(5, 0, 0), rankerItem(6, 3, 0)],
];

function servedAs({ modelName, modelVersion }: ServerUnderTest, family: string): ServedModel {
  const fill = (template: string): string =>
    template.replaceAll('{family}', family).replaceAll('{version}', '1');
  return { name: fill(modelName), version: modelVersion === '' ? undefined : fill(modelVersion) };
}

function statusOf({ status }: ItemResult): ItemResult['status'] {
  return status;
}

function expectSame(got: readonly ItemResult[], want: readonly ItemResult[]): void {
  expect(got).toHaveLength(want.length);
  for (const [n, result] of want.entries()) {
    const wanted = scoresOf(result);
    const { scores, heads } = scoresOf(got[n]);
    expect(heads.map(({ name }) => name)).toEqual(wanted.heads.map(({ name }) => name));
    expect(scores).toHaveLength(wanted.scores.length);
    for (const [i, score] of wanted.scores.entries())
      expect(Math.abs((scores[i] ?? Number.NaN) - score)).toBeLessThanOrEqual(TOLERANCE);
  }
}

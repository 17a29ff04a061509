import { cpSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { memoryBroker } from '../../../src/adapters/memory/bus.ts';
import { memoryControlServer } from '../../../src/adapters/memory/control-store.ts';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { systemClock } from '../../../src/adapters/system/clock.ts';
import { parseRequest } from '../../../src/cli/request-file.ts';
import { connect } from '../../../src/client/client.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import type { Settings } from '../../../src/config/settings.ts';
import { readUserFile } from '../../../src/config/user-file.ts';
import type { PoolStatus } from '../../../src/contracts/records.ts';
import { topicSpecs } from '../../../src/contracts/topic-specs.ts';
import { createTopicDelay } from '../../../src/core/latency/topic-delay.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import { growingRepository } from '../../../src/inference/repository/growing-repository.ts';
import { startAcceleratorWorker } from '../../../src/wiring/accelerator-worker.ts';
import { createBackend, loadModels, openModels } from '../../../src/wiring/backends.ts';
import { startEmbedded } from '../../../src/wiring/embedded.ts';
import { serveHealth } from '../../../src/wiring/health-server.ts';
import { readFleet } from '../../../src/wiring/policy-files.ts';
import { temporaryFolder } from '../cli/temporary-folder.ts';
import { grpcServer } from '../inference/open-inference/grpc-server.ts';
import { protocolServer } from '../inference/open-inference/http-server.ts';
import { noLibrary } from '../stages/accelerator-worker/library.fixture.ts';
import { codecs, topics } from '../stages/records.fixture.ts';

/** Far more than a call needs on a busy machine. */
const PATIENCE_MS = 60_000;
const RANKER = 'models/repository/ranker/1';

/** Settings of workers before a server at whose port nobody listens yet. */
async function beforeTheServer(overrides: Readonly<Record<string, unknown>> = {}) {
  const folder = temporaryFolder();
  cpSync(RANKER, folder.path('models/ranker/1'), { recursive: true });
  const port = await freePort();
  const { settings } = loadSettings(
    {},
    {
      fleet: 'examples/fleets/one-pool.yaml',
      policy: 'examples/policies/one-pool.yaml',
      models: folder.path('models'),
      'worker.backend': 'open-inference',
      'worker.heartbeatMs': 50,
      'openInference.url': `http://127.0.0.1:${port}`,
      'openInference.timeoutMs': 300,
      ...overrides,
    },
  );
  let stopServer = async (): Promise<void> => undefined;
  onTestFinished(() => stopServer());
  /** In place of the one before it. */
  const startServer = async (names: { name?: string } = {}): Promise<void> => {
    await stopServer();
    const graph = await readFile(`${RANKER}/model.onnx`);
    const serve = settings.openInference.protocol === 'grpc' ? grpcServer : protocolServer;
    const server = await serve([{ name: 'ranker', version: '1', graph, ...names }], { port });
    stopServer = server.close;
  };
  return { settings, startServer };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A worker as its service starts it, on a broker in memory: what `/readyz` answers, and what its heartbeats say. */
async function startWorker(settings: Settings) {
  const clock = systemClock();
  const telemetry = silentTelemetry();
  const random = seededRandom(1);
  const broker = memoryBroker({ clock });
  const join = (clientId: string) =>
    broker.connect({ clientId, drainTimeoutMs: 1_000, sessionTimeoutMs: 6_000, telemetry });
  const outside = join('outside');
  const pools = new Map([['cpu', 2]]);
  await outside.admin.createTopics(topicSpecs({ topics, partitions: 1, replication: 1, pools, tenants: [] }));
  const statuses: PoolStatus[] = [];
  await outside.read({ topics: [topics.fixed('pool-status')], startAt: 'earliest' }, (records) => {
    for (const { value } of records) {
      const decoded = codecs.for('PoolStatus').decode(value);
      if (decoded.status === 'ok') statuses.push(decoded.value);
    }
  });
  const repository = growingRepository(await openModels(settings, telemetry));
  const backend = createBackend(settings, 'cpu', { repository, clock, random });
  const models = await loadModels(backend, repository, telemetry);
  const stage = await startAcceleratorWorker(
    settings,
    { bus: join('worker'), codecs, topics, clock, random, telemetry, topicDelay: createTopicDelay() },
    {
      ...{ fleet: readFleet(settings), backend, models, repository },
      store: memoryControlServer({ clock }).connect(),
      library: noLibrary(),
    },
  );
  const health = await serveHealth(
    { host: '127.0.0.1', port: 0 },
    { metricsText: async () => '', metricsContentType: 'text/plain', logger: telemetry.logger },
    () => [stage],
  );
  onTestFinished(async () => {
    await health.close();
    await stage.close();
    await backend.close();
  });
  const readyz = async (): Promise<string> => {
    const response = await fetch(`${health.url}/readyz`);
    return `${response.status} ${(await response.text()).trim()}`;
  };
  return { readyz, statuses };
}

it.each([
  ['shared', { 'worker.shareSlots': true }],
  ['fixed', { 'worker.slots': [0, 1] }],
])(
  'a worker that starts before its server is not ready and holds none of its %s slots until the server has the model',
  async (_, slots) => {
    const { settings, startServer } = await beforeTheServer(slots);
    const { readyz, statuses } = await startWorker(settings);
    const away = /^503 accelerator-worker: no model version is loaded: ranker@1: .*ECONNREFUSED/;
    expect(await readyz()).toMatch(away);
    // as many heartbeats as it takes to claim a slot, and more
    await vi.waitFor(() => expect(statuses.length).toBeGreaterThan(20), PATIENCE_MS);
    expect(statuses.every((status) => status.slots.length === 0 && status.models.length === 0)).toBe(true);

    await startServer({ name: 'other' });
    const lacks = /^503 .*ranker@1: .*HTTP 404: unknown model/;
    await vi.waitFor(async () => expect(await readyz()).toMatch(lacks), PATIENCE_MS);

    await startServer();
    await vi.waitFor(async () => expect(await readyz()).toBe('200 ok'), PATIENCE_MS);
    await vi.waitFor(() => expect(statuses.at(-1)?.slots).toHaveLength(2), PATIENCE_MS);
    expect(statuses.at(-1)?.models).toMatchObject([{ family: 'ranker', version: '1' }]);
  },
  3 * PATIENCE_MS,
);

it.each(['http', 'grpc'])(
  'a request that came before the server did is scored once the server is there, over %s',
  async (protocol) => {
    const { settings, startServer } = await beforeTheServer({ 'openInference.protocol': protocol });
    const telemetry = silentTelemetry();
    const pipeline = await startEmbedded(settings, { telemetry, random: seededRandom(1) });
    onTestFinished(() => pipeline.close());
    const client = await connect({ transport: { open: () => pipeline.connect() } });
    const file = readUserFile('examples/requests/ranker.json').toString();
    const request = { ...parseRequest(JSON.parse(file), 'ranker'), deadlineMs: PATIENCE_MS };
    const scored = client.score(request);
    await vi.waitFor(
      () => expect(pipeline.stages.reduce((sum, stage) => sum + stage.inFlight(), 0)).toBe(1),
      PATIENCE_MS,
    );
    await startServer();
    expect(await scored).toMatchObject({ outcome: 'SCORED', modelVersion: '1' });
    await client.close();
  },
  2 * PATIENCE_MS,
);

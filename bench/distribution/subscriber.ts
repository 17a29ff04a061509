/** One router's side of the distribution, as a thread: the control store, the policy source, and a router that swaps. */
import { parentPort, workerData } from 'node:worker_threads';
import { memorySchemaRegistry } from '../../src/adapters/memory/schema-registry.ts';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { redisControlStore } from '../../src/adapters/redis/control-store.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { policyThread } from '../../src/adapters/system/policy-thread.ts';
import { createCodecs } from '../../src/contracts/codec.ts';
import { makeRoutableRequest } from '../../src/contracts/records.ts';
import { topicNames } from '../../src/contracts/topics.ts';
import { compilePolicy } from '../../src/core/policy/compile.ts';
import { REFERENCE_FLEET } from '../../src/core/policy/fleet.ts';
import { poolsOf } from '../../src/core/policy/fleet-pools.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import type { Telemetry } from '../../src/ports/telemetry.ts';
import { PolicySource } from '../../src/stages/request-router/policy-source.ts';
import { Router } from '../../src/stages/request-router/router.ts';
import { createResultWriter } from '../../src/stages/results.ts';
import { compileChecked, digestOf } from '../../src/wiring/policy-files.ts';
import { machineMs, type SubscriberData, type SubscriberMessage, type Swap } from './messages.ts';
import { policyText } from './policies.ts';

const data = workerData as SubscriberData;
const clock = systemClock();
const fleet = REFERENCE_FLEET;
const tell = (message: SubscriberMessage): void => parentPort?.postMessage(message);

/** What the event loop spent on the swap that is under way. */
let swap: Swap = { ms: 0, isInterrupted: false };
const router = createRouter();
for (let n = 0; n < data.waiting; n += 1) routeOne(n);
const source = new PolicySource({
  store: redisControlStore({ url: data.url, prefix: data.prefix, clock, telemetry: telemetryThatTells() }),
  clock,
  random: seededRandom(data.index).stream('poll'),
  telemetry: silentTelemetry(),
  scope: data.scope,
  member: `subscriber-${data.index}`,
  digest: digestOf,
  compile: createCompile(),
  apply: (stable, canary) => {
    measured(() => router.setPolicy(stable, canary));
    const { index } = data;
    const { epoch } = stable;
    tell({ kind: 'applied', index, epoch, canaryPercent: canary?.percent, swap, atMs: machineMs() });
    swap = { ms: 0, isInterrupted: false };
  },
});
await source.start();
if (data.watchesPauses) watchPauses();
tell({ kind: 'started', index: data.index });

/** In a thread, as a router does that has requests on their way. Twenty more threads would only stand in each other's way: they have none. */
function createCompile() {
  if (!data.watchesPauses) return (bytes: Uint8Array) => compileChecked(bytes, fleet);
  const thread = policyThread(clock);
  return async (bytes: Uint8Array) => {
    const document = await thread.read(bytes, fleet);
    return measured(() => compilePolicy(document, { fleet }));
  };
}

function measured<T>(part: () => T): T {
  const switches = process.resourceUsage().involuntaryContextSwitches;
  const startedMs = machineMs();
  const result = part();
  const ms = swap.ms + machineMs() - startedMs;
  const isInterrupted = swap.isInterrupted || process.resourceUsage().involuntaryContextSwitches > switches;
  swap = { ms, isInterrupted };
  return result;
}

/** The connection says in its log that Redis is away, and nowhere else. */
function telemetryThatTells(): Telemetry {
  const telemetry = silentTelemetry();
  const logger = {
    ...telemetry.logger,
    warn: (_fields: unknown, message: string) => {
      if (message.startsWith('Redis is away')) tell({ kind: 'away', index: data.index, atMs: machineMs() });
    },
    child: () => logger,
  };
  return { ...telemetry, logger };
}

/** No worker is heard of, so every request waits. */
function createRouter(): Router {
  const topics = topicNames();
  const codecs = createCodecs({ registry: memorySchemaRegistry(), clock });
  const bytes = policyText(0);
  return new Router(
    {
      router: `subscriber-${data.index}`,
      ackPartition: 0,
      creditsMax: 1,
      statusStaleMs: 1_000,
      giveUpGraceMs: 0,
      poolsOf: poolsOf(fleet),
    },
    {
      clock,
      random: seededRandom(data.index).stream('ties'),
      topics,
      dispatchCodec: codecs.for('Dispatch'),
      results: createResultWriter(codecs.for('ScoredResult'), topics.fixed('scored-results'), 1),
    },
    {
      ref: { digest: digestOf(bytes), name: 'bench', version: 0 },
      epoch: 0,
      compiled: compileChecked(bytes, fleet),
      source: 'built-in',
    },
  );
}

function routeOne(n: number): void {
  const nowMs = clock.monotonicMs();
  const done = (): void => undefined;
  router.route({
    request: makeRoutableRequest({
      requestId: `r${n}`,
      identity: { topic: 'ingress', partition: 0, offset: n },
      model: 'ranker',
      signals: { sequenceLength: n % 64, sparsityRatio: (n % 100) / 100 },
      bucketKey: `user-${n}`,
      candidateCount: 1,
      baselineCandidates: 1,
      payload: Buffer.alloc(0),
    }),
    record: {
      topic: 'features',
      partition: 0,
      offset: n,
      timestampMs: 0,
      key: null,
      value: null,
      headers: {},
      assignment: 1,
    },
    receivedAtMs: nowMs,
    inTopicMs: 0,
    deadlineMs: nowMs + 3_600_000,
    finish: done,
    deadLetter: done,
    abandon: done,
  });
}

/** Turns the event loop without rest, and tells every 20 ms of the longest turn. */
function watchPauses(): void {
  let lastMs = machineMs();
  let pauseMs = 0;
  let toldMs = lastMs;
  const turn = (): void => {
    const nowMs = machineMs();
    pauseMs = Math.max(pauseMs, nowMs - lastMs);
    if (nowMs - toldMs > 20) {
      tell({ kind: 'pause', index: data.index, pauseMs, atMs: nowMs });
      pauseMs = 0;
      toldMs = nowMs;
    }
    lastMs = machineMs();
    setImmediate(turn);
  };
  setImmediate(turn);
}

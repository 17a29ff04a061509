import { readFileSync } from 'node:fs';
import { memorySchemaRegistry } from '../src/adapters/memory/schema-registry.ts';
import { systemClock } from '../src/adapters/system/clock.ts';
import { createCodecs } from '../src/contracts/codec.ts';
import { makePoolStatus, makeRoutableRequest, type RoutableRequest } from '../src/contracts/records.ts';
import { recordTopics } from '../src/contracts/topic-specs.ts';
import { topicNames } from '../src/contracts/topics.ts';
import { REFERENCE_FLEET } from '../src/core/policy/fleet.ts';
import { poolsOf } from '../src/core/policy/fleet-pools.ts';
import { seededRandom } from '../src/core/random/seeded-random.ts';
import type { InboundRecord, OutboundRecord } from '../src/ports/message-bus.ts';
import type { ActiveCanary } from '../src/stages/request-router/active-policy.ts';
import { Router } from '../src/stages/request-router/router.ts';
import { createResultWriter } from '../src/stages/results.ts';
import { compileChecked, digestOf } from '../src/wiring/policy-files.ts';
import type { BenchRow } from './run.ts';

const REQUESTS = 1_000;
const ROUNDS = 200;
const SHADOW_TURNS = 9;
const STARTER = 'examples/policies/starter.yaml';

/** The whole step of the router in memory: decide, filter, score, pick, credit, encode the dispatch; with and without decoding. */
export async function run(): Promise<{ rows: BenchRow[] }> {
  const rows: BenchRow[] = [await shadowRow()];
  for (const payloadBytes of [2_048, 32_768]) {
    for (const slotsPerPool of [4, 16]) {
      const bench = await createBench(payloadBytes, slotsPerPool);
      const label = `${payloadBytes / 1_024} KB payload, ${slotsPerPool} slots a pool`;
      const target = { target: 10, relation: '<=' as const };
      rows.push({
        metric: `router step, ${label}`,
        value: medianUs(() => bench.route()),
        unit: 'µs',
        ...target,
      });
      rows.push({
        metric: `router step with decoding of the record, ${label}`,
        value: medianUs(() => bench.decodeAndRoute()),
        unit: 'µs',
        ...target,
      });
    }
  }
  return { rows };
}

/** What a candidate in shadow, that changes the target of about a tenth of the requests, adds to the step: both take turns. */
async function shadowRow(): Promise<BenchRow> {
  const alone = await createBench(2_048, 4);
  const shadowed = await createBench(2_048, 4, candidate());
  const ratios: number[] = [];
  for (let turn = 0; turn < SHADOW_TURNS; turn += 1) {
    const aloneUs = medianUs(() => alone.route());
    ratios.push(medianUs(() => shadowed.route()) / aloneUs);
  }
  return {
    metric: 'router step with a candidate in shadow / without, 2 KB payload, 4 slots a pool',
    value: median(ratios),
    unit: '×',
    target: 1.15,
    relation: '<=',
  };
}

function candidate(): ActiveCanary {
  const text = readFileSync(STARTER, 'utf8').replace('biasMax > 0.8', 'biasMax > 0.6');
  const bytes = Buffer.from(text);
  const ref = { digest: digestOf(bytes), name: 'starter', version: 2 };
  return {
    policy: { ref, epoch: 1, compiled: compileChecked(bytes, REFERENCE_FLEET), source: 'store' },
    mode: 'shadow',
    percent: 0,
    salt: 'bench',
    unit: 'bucketKey',
  };
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** Median over rounds of the mean time per request of a round. */
function medianUs(step: () => void): number {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const started = performance.now();
    for (let n = 0; n < REQUESTS / 10; n += 1) step();
    times.push(((performance.now() - started) * 1_000) / (REQUESTS / 10));
  }
  return median(times);
}

async function createBench(
  payloadBytes: number,
  slotsPerPool: number,
  canary?: ActiveCanary,
): Promise<{ route(): void; decodeAndRoute(): void }> {
  const clock = systemClock();
  const topics = topicNames();
  const codecs = createCodecs({ registry: memorySchemaRegistry(), clock });
  const fleet = REFERENCE_FLEET;
  const pools = [...fleet.accelerators].flatMap(([accelerator, { pools: named, kernels, memories }]) =>
    named.map(({ pool }) => ({ pool, accelerator, kernels, memories })),
  );
  await codecs.register(recordTopics({ topics, tenants: [], pools: pools.map(({ pool }) => pool) }));
  const bytes = readFileSync(STARTER);
  const compiled = compileChecked(bytes, fleet);
  const random = seededRandom(1).stream('bench');
  const router = new Router(
    {
      router: 'bench',
      ackPartition: 0,
      creditsMax: 1_000,
      statusStaleMs: Number.MAX_SAFE_INTEGER,
      giveUpGraceMs: 0,
      poolsOf: poolsOf(fleet),
    },
    {
      clock,
      random,
      topics,
      dispatchCodec: codecs.for('Dispatch'),
      results: createResultWriter(codecs.for('ScoredResult'), topics.fixed('scored-results'), 12),
    },
    { ref: { digest: digestOf(bytes), name: 'starter', version: 1 }, epoch: 1, compiled, source: 'store' },
    canary,
  );
  for (const { pool, accelerator, kernels, memories } of pools) {
    for (let slot = 0; slot < slotsPerPool; slot += 1) {
      router.onStatus(
        makePoolStatus({
          pool,
          capacityClass: 'DEDICATED',
          worker: `${pool}-${slot}`,
          incarnation: '1',
          sequence: 1,
          accelerator,
          backend: 'none',
          slots: [slot],
          kernels: [...kernels],
          memories: [...memories],
          models: [{ family: 'ranker', version: '1', variant: 'BASELINE' }],
          batchRequests: 16,
        }),
      );
    }
  }
  const requests = [...Array(REQUESTS).keys()].map((n) => routable(n, payloadBytes, random));
  const records = requests.map((request) => codecs.for('RoutableRequest').encode(request));
  const record: InboundRecord = {
    topic: topics.fixed('features'),
    partition: 0,
    offset: 0,
    timestampMs: 0,
    key: null,
    value: null,
    headers: {},
    assignment: 1,
  };
  let next = 0;
  const routeOne = (request: RoutableRequest): void => {
    const nowMs = clock.monotonicMs();
    router.route({
      request,
      record,
      receivedAtMs: nowMs,
      inTopicMs: 1,
      deadlineMs: nowMs + 100_000,
      finish: release,
      deadLetter: () => undefined,
      abandon: () => undefined,
    });
  };
  const slots = new Map(
    [...router.fleet.allSlots()].map((slot) => [`${topics.dispatch(slot.pool)}/${slot.partition}`, slot]),
  );
  /** In place of the acknowledgement that would come: the dispatch is given up at once. */
  function release(outputs: readonly OutboundRecord[]): void {
    for (const { topic, partition } of outputs)
      slots.get(`${topic}/${partition}`)?.sweep(Number.POSITIVE_INFINITY);
  }
  return {
    route() {
      next = (next + 1) % REQUESTS;
      const request = requests[next];
      if (request !== undefined) routeOne(request);
    },
    decodeAndRoute() {
      next = (next + 1) % REQUESTS;
      const decoded = codecs.for('RoutableRequest').decode(records[next] ?? null);
      if (decoded.status === 'ok') routeOne(decoded.value);
    },
  };
}

function routable(n: number, payloadBytes: number, random: { next(): number }): RoutableRequest {
  return makeRoutableRequest({
    requestId: `request-${n}`,
    identity: { topic: 'millrace.ingress.v1', partition: n % 12, offset: n },
    model: 'ranker',
    signals: {
      sparsityRatio: random.next(),
      nonZeroShare: random.next(),
      embeddingNorm: random.next() * 4,
      biasMax: random.next(),
      activationBytes: 40_000 * random.next() * 4,
      sequenceLength: Math.floor(random.next() * 64),
      attentionHeadVariance: random.next(),
      candidateCount: 64,
      predictedCostMs: random.next(),
    },
    budgetMs: 100,
    budgetRemainingMs: 95,
    bucketKey: `user-${n}`,
    candidateCount: 64,
    baselineCandidates: 64,
    payload: Buffer.alloc(payloadBytes, n & 0xff),
  });
}

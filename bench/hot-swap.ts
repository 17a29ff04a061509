import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { processContext } from '../src/cli/context.ts';
import { describePlace, placeOf } from '../src/cli/model-place.ts';
import type { Connection } from '../src/client/connection.ts';
import { schemaOf } from '../src/contracts/headers.ts';
import type { PoolStatus, ScoredResult } from '../src/contracts/records.ts';
import { seededRandom } from '../src/core/random/seeded-random.ts';
import type { Stack } from '../src/local-stack/stack.ts';
import { startStack } from '../src/local-stack/start-stack.ts';
import { generatedArrivals } from '../src/traffic/arrivals.ts';
import { readCatalogue } from '../src/traffic/catalogue.ts';
import { drive } from '../src/traffic/drive.ts';
import { openOutsideLedger } from '../src/traffic/outside-ledger.ts';
import { createRequestMaker } from '../src/traffic/request-maker.ts';
import { openSender } from '../src/traffic/send-requests.ts';
import { type ControlRoom, openControlRoom } from '../test/slow/control-events.ts';
import { eventually, startRealPipeline } from '../test/slow/real-pipeline.ts';
import { rankerVersion } from '../test/unit/inference/ranker-version.ts';
import { percentile } from './pipeline/statistics.ts';
import type { BenchRow } from './run.ts';

/**
 * Another version of a model while requests are scored, the whole way: published on the control topic, fetched, checked and loaded by the workers
 * beside the one that serves, and put in force by a policy that names it, over shadow, canary and live.
 *
 *   npm run bench -- hot-swap --rounds 5 --rate 150
 */

const USAGE = {
  rounds: { type: 'string', default: '5' },
  rate: { type: 'string', default: '150' },
} as const;
const WARM_UP_MS = 15_000;
const STEADY_MS = 15_000;
/** After the last result of the version before: what the swap left behind. */
const SETTLE_MS = 3_000;

interface Answered {
  atMs: number;
  version: string;
  outcome: string;
  totalMs: number;
}

interface Span {
  fromMs: number;
  toMs: number;
}

export async function run(args: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const folder = mkdtempSync(join(tmpdir(), 'millrace-hot-swap-'));
  const stack = await startStack();
  try {
    return { rows: await measure(stack, folder, Number(values.rounds), Number(values.rate)) };
  } finally {
    await stack.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(stack: Stack, folder: string, rounds: number, rate: number): Promise<BenchRow[]> {
  cpSync('models/repository/ranker/1', join(folder, 'models/ranker/1'), { recursive: true });
  const pipeline = await startRealPipeline(stack.environment, {
    environment: {
      MILLRACE_MODELS: join(folder, 'models'),
      MILLRACE_CONTROLLER_ACCEPT_UNSIGNED: 'true',
    },
  });
  const { client } = pipeline;
  const answered: Answered[] = [];
  const ledger = await openOutsideLedger(client, { onResult: (result) => answered.push(answerOf(result)) });
  const stop = new AbortController();
  const driving = drive({ ...(await traffic(client, rate)), signal: stop.signal });
  try {
    const ready = await readyVersions(client);
    const room = await openControlRoom(client, 'policy/one-pool');
    const models = await openControlRoom(client, 'model/ranker');
    await room.send('PUBLISH_POLICY', policyText(2, '1'));
    await pause(WARM_UP_MS);
    const [steady, swaps]: [Span[], Span[]] = [[], []];
    for (let version = 3; version < 3 + rounds; version += 1) {
      steady.push(await span(() => pause(STEADY_MS)));
      swaps.push(await span(() => swap({ room, models, ready, answered, folder, version })));
      console.error(`swapped to ranker@${version}`);
    }
    stop.abort();
    const { sent } = await driving;
    await ledger.drained(60_000, sent);
    const { inFlight, outcomes } = ledger.summary();
    return rowsOf(answered, { steady, swaps, sent, lost: inFlight, scored: outcomes.scored });
  } finally {
    stop.abort();
    await driving;
    await ledger.close();
    await pipeline.close();
  }
}

interface Swapping {
  room: ControlRoom;
  models: ControlRoom;
  ready: ReadonlyMap<string, ReadonlySet<string>>;
  answered: readonly Answered[];
  folder: string;
  version: number;
}

async function swap({ room, models, ready, answered, folder, version }: Swapping): Promise<void> {
  const name = String(version);
  const place = placeOf(rankerVersion(join(folder, 'published'), name));
  const described = await describePlace(processContext(), place);
  await models.send('PUBLISH_MODEL', JSON.stringify({ ...described, source: place }));
  await eventually(() => ready.get(name)?.size === 2, `ranker@${name} is ready on both workers`);
  await room.send('PUBLISH_POLICY', policyText(version, name));
  await room.send('START', JSON.stringify({ version }));
  await room.send('PROMOTE', '{}');
  // The guardrail of scores holds a version whose scores are other ones, as these are.
  await room.send('PROMOTE', JSON.stringify({ to: 'live', overHold: true }));
  await eventually(
    () => answered.slice(-50).every((answer) => answer.version === name),
    `ranker@${name} serves`,
  );
  await pause(SETTLE_MS);
}

function policyText(version: number, model: string): string {
  return `
apiVersion: millrace/v1
kind: RoutingPolicy
name: one-pool
version: ${version}
${model === '1' ? '' : `models: {ranker: "${model}"}`}
tree:
  - {id: everything, to: {accelerator: cpu, kernel: dense, memory: host}}
rollout: {shadow: 2s, canary: {percent: 50, dwell: 2s}, ramp: [], unit: requestId}
`;
}

async function traffic(client: Connection, ratePerSecond: number) {
  const random = seededRandom(1);
  const shape = { ratePerSecond, candidatesMax: 64, historyRowsMax: 16 };
  return {
    arrivals: generatedArrivals(shape, random.stream('arrivals')),
    maker: createRequestMaker(readCatalogue('models/catalogue'), random.stream('requests'), {
      deadlineMs: 60_000,
    }),
    clock: client.clock,
    idPrefix: 'swap-',
    send: await openSender(client),
    requestsMax: Number.POSITIVE_INFINITY,
    durationMs: Number.POSITIVE_INFINITY,
  };
}

function answerOf({ modelVersion, outcome, timings }: ScoredResult): Answered {
  return { atMs: performance.now(), version: modelVersion ?? '', outcome, totalMs: timings.totalMs };
}

/** By published version: the workers that can run it. */
async function readyVersions({ bus, codecs, topics }: Connection): Promise<Map<string, Set<string>>> {
  const ready = new Map<string, Set<string>>();
  const codec = codecs.for('PoolStatus');
  const take = ({ worker, published }: PoolStatus): void => {
    for (const { version, status } of published)
      if (status === 'READY') ready.set(version, (ready.get(version) ?? new Set()).add(worker));
  };
  await bus.read({ topics: [topics.fixed('pool-status')], startAt: 'latest' }, (records) => {
    for (const { value, headers } of records) {
      const decoded = codec.decode(value, schemaOf(headers));
      if (decoded.status === 'ok') take(decoded.value);
      else if (decoded.status === 'schema-unknown') void codecs.learn(decoded);
    }
  });
  return ready;
}

async function span(work: () => Promise<void>): Promise<Span> {
  const fromMs = performance.now();
  await work();
  return { fromMs, toMs: performance.now() };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function rowsOf(
  answered: readonly Answered[],
  {
    steady,
    swaps,
    sent,
    lost,
    scored,
  }: { steady: Span[]; swaps: Span[]; sent: number; lost: number; scored: number },
): BenchRow[] {
  const within = (spans: readonly Span[]): number[] =>
    answered
      .filter(({ atMs }) => spans.some(({ fromMs, toMs }) => atMs >= fromMs && atMs < toMs))
      .map(({ totalMs }) => totalMs);
  const [between, during] = [within(steady), within(swaps)];
  const [p99Between, p99During] = [percentile(between, 0.99), percentile(during, 0.99)];
  return [
    { metric: 'requests', value: sent, unit: '' },
    { metric: 'versions swapped', value: swaps.length, unit: '' },
    { metric: 'requests lost', value: lost, unit: '', target: 0, relation: '<=' },
    {
      metric: 'requests that did not end as SCORED',
      value: sent - lost - scored,
      unit: '',
      target: 0,
      relation: '<=',
    },
    {
      metric: 'from the publication to the last result of the version before, and 3 s, mean',
      value: mean(swaps),
      unit: 'ms',
    },
    { metric: 'p50 between swaps', value: percentile(between, 0.5), unit: 'ms' },
    { metric: 'p50 during swaps', value: percentile(during, 0.5), unit: 'ms' },
    { metric: 'p99 between swaps', value: p99Between, unit: 'ms' },
    { metric: 'p99 during swaps', value: p99During, unit: 'ms' },
    {
      metric: 'p99 during swaps / between',
      value: p99During / p99Between,
      unit: '×',
      target: 1.5,
      relation: '<=',
    },
  ];
}

function mean(spans: readonly Span[]): number {
  return spans.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0) / spans.length;
}

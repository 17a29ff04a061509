import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { silentTelemetry } from '../src/adapters/memory/telemetry.ts';
import { redisControlStore } from '../src/adapters/redis/control-store.ts';
import { systemClock } from '../src/adapters/system/clock.ts';
import type { Stack } from '../src/local-stack/stack.ts';
import { startStack } from '../src/local-stack/start-stack.ts';
import type { CanaryPointer, ControlStore, PolicyRef } from '../src/ports/control-store.ts';
import { digestOf } from '../src/wiring/policy-files.ts';
import { machineMs, type Swap } from './distribution/messages.ts';
import { policyText } from './distribution/policies.ts';
import { Subscribers } from './distribution/subscribers.ts';
import { percentile } from './pipeline/statistics.ts';
import type { BenchRow } from './run.ts';

interface Options {
  subscribers: number;
  /** Verdicts, and changes under disconnects. */
  rounds: number;
  swaps: number;
  /** A Redis that is there already; a stopped one cannot be tried on it. */
  redis: string;
}

const SCOPE = 'policy/bench';
const KILL_EVERY_MS = 250;
const HALF_OPEN_MS = 6_000;

/**
 * Policies on their way from the controller to 20 routers, on a real Redis: each router is a thread with the control store, the policy source and
 * a router of its own. The clock is the machine's monotonic one, from right before the pointer is written.
 *
 *   npm run bench -- distribution --subscribers 20 --rounds 50 --swaps 2000
 */
export async function run(args: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const options = readOptions(args);
  const stack = options.redis === '' ? await startStack() : undefined;
  const url = stack?.environment['MILLRACE_REDIS_URL'] ?? options.redis;
  const world = await openWorld(url);
  try {
    const rows: BenchRow[] = [];
    rows.push(...(await measureRouters(world, options, stack)));
    rows.push(...(await measurePauses(world, options)));
    return { rows };
  } finally {
    await world.close();
    await stack?.stop();
  }
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      subscribers: { type: 'string', default: '20' },
      rounds: { type: 'string', default: '50' },
      swaps: { type: 'string', default: '2000' },
      redis: { type: 'string', default: '' },
    },
  });
  const { subscribers, rounds, swaps, redis } = values;
  return { subscribers: Number(subscribers), rounds: Number(rounds), swaps: Number(swaps), redis };
}

/** The controller's hand on Redis, and a second one that cuts connections. */
interface World {
  url: string;
  prefix: string;
  /** Points to a version, and to a canary if any; answers the epoch and when it was about to be written. */
  point(
    version: number,
    canary?: { version: number; percent: number },
  ): Promise<{ epoch: number; atMs: number }>;
  /** Cuts every connection but the controller's own. */
  cutOthers(): Promise<void>;
  close(): Promise<void>;
}

async function openWorld(url: string): Promise<World> {
  const prefix = `bench-${process.pid}-${Date.now().toString(36)}`;
  const store = redisControlStore({ url, prefix, clock: systemClock(), telemetry: silentTelemetry() });
  const knife = new Redis(url);
  await store.readPointer(SCOPE);
  await knife.ping();
  const own = new Set(await connections(knife));
  const published = new Set<number>();
  let epoch = 0;
  return {
    url,
    prefix,
    async point(version, canary) {
      for (const each of [version, canary?.version ?? version]) await publishOnce(store, published, each);
      epoch += 1;
      const pointer = { epoch, term: 1, stable: refOf(version), canary: canary && canaryOf(canary) };
      const atMs = machineMs();
      const { status } = await store.writePointer(SCOPE, pointer);
      if (status !== 'applied') throw new Error(`the pointer of epoch ${epoch} is ${status}`);
      return { epoch, atMs };
    },
    async cutOthers() {
      const others = (await connections(knife)).filter((id) => !own.has(id));
      await Promise.all(others.map((id) => knife.client('KILL', 'ID', id)));
    },
    async close() {
      const keys = await knife.keys(`${prefix}:*`);
      if (keys.length > 0) await knife.del(keys);
      knife.disconnect();
      await store.close();
    },
  };
}

async function publishOnce(store: ControlStore, published: Set<number>, version: number): Promise<void> {
  if (published.has(version)) return;
  published.add(version);
  await store.putDocument(digestOf(policyText(version)), policyText(version));
}

async function connections(redis: Redis): Promise<string[]> {
  const list = String(await redis.client('LIST'));
  return [...list.matchAll(/^id=(\d+) /gm)].map((match) => match[1] ?? '');
}

function refOf(version: number): PolicyRef {
  return { digest: digestOf(policyText(version)), name: 'bench', version };
}

function canaryOf({ version, percent }: { version: number; percent: number }): CanaryPointer {
  const policy = refOf(version);
  return { policy, mode: 'canary', percent, salt: 'bench', unit: 'bucketKey', leaseMs: 60_000, beat: 1 };
}

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function measureRouters(world: World, options: Options, stack: Stack | undefined): Promise<BenchRow[]> {
  const { url, prefix } = world;
  await world.point(1);
  const data = { url, prefix, scope: SCOPE, watchesPauses: false, waiting: 0 };
  const subscribers = await Subscribers.start(options.subscribers, data);
  const many = `${options.subscribers} routers`;
  try {
    const verdicts = await measureVerdicts(world, subscribers, options.rounds);
    const stale = await measureDisconnects(world, subscribers, options.rounds);
    const rows: BenchRow[] = [
      {
        metric: `pointer in Redis → 99 % of ${many} on stable, median`,
        value: percentile(verdicts, 0.5),
        unit: 'ms',
      },
      {
        metric: `pointer in Redis → 99 % of ${many} on stable, worst of ${verdicts.length}`,
        value: Math.max(...verdicts),
        unit: 'ms',
        target: 1_000,
        relation: '<=',
      },
      {
        metric: `staleness under forced disconnects, ${many}, p99`,
        value: percentile(stale, 0.99),
        unit: 'ms',
      },
      {
        metric: `staleness under forced disconnects, ${many}, worst of ${stale.length}`,
        value: Math.max(...stale),
        unit: 'ms',
        target: 1_500,
        relation: '<=',
      },
    ];
    if (stack === undefined) return rows;
    const found = await measureHalfOpen(stack, subscribers);
    const metric = `half-open Redis found, ${many}, latest`;
    return [...rows, { metric, value: Math.max(...found), unit: 'ms', target: 5_000, relation: '<=' }];
  } finally {
    await subscribers.close();
  }
}

/** For each verdict: when 99 % of the routers had left the canary. */
async function measureVerdicts(world: World, subscribers: Subscribers, rounds: number): Promise<number[]> {
  const verdicts: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const { epoch } = await world.point(1, { version: 2, percent: 50 });
    const obeys = ({ canaryPercent }: { canaryPercent: number | undefined }): boolean => canaryPercent === 50;
    await subscribers.until('the canary is obeyed', () => subscribers.appliedMs(epoch, obeys) !== undefined);
    await pass(200 * Math.random());
    const verdict = await world.point(1);
    await subscribers.until('all are on stable', () => subscribers.appliedMs(verdict.epoch) !== undefined);
    const times = subscribers.appliedMs(verdict.epoch) ?? [];
    verdicts.push(percentile(times, 0.99) - verdict.atMs);
    subscribers.applied.length = 0;
  }
  return verdicts;
}

/** How long each router ran the policy before, change by change, while all connections are cut again and again. */
async function measureDisconnects(world: World, subscribers: Subscribers, rounds: number): Promise<number[]> {
  const stale: number[] = [];
  const cutting = setInterval(() => {
    world.cutOthers().catch((error: unknown) => console.error(error));
  }, KILL_EVERY_MS);
  try {
    for (let round = 0; round < rounds; round += 1) {
      await pass(2 * KILL_EVERY_MS * Math.random());
      const change = await world.point(1 + (round % 2));
      await subscribers.until('all follow', () => subscribers.appliedMs(change.epoch) !== undefined);
      for (const atMs of subscribers.appliedMs(change.epoch) ?? []) stale.push(atMs - change.atMs);
      subscribers.applied.length = 0;
    }
  } finally {
    clearInterval(cutting);
  }
  return stale;
}

/** Redis is stopped without a word, as on a network that drops packets: how long each connection takes to find out. */
async function measureHalfOpen(stack: Stack, subscribers: Subscribers): Promise<number[]> {
  await pass(2_000);
  subscribers.awayMs.length = 0;
  await stack.pauseRedis();
  const pausedMs = machineMs();
  await pass(HALF_OPEN_MS);
  await stack.resumeRedis();
  const found = subscribers.awayMs.map((atMs) => atMs - pausedMs);
  // Each router has two connections: one for commands, one for hints.
  if (found.length < 2 * subscribers.count)
    throw new Error(
      `${found.length} of ${2 * subscribers.count} connections found out in ${HALF_OPEN_MS} ms`,
    );
  return found;
}

/** One router alone, with requests that wait to be decided anew; each swap is to a document that it never saw. */
async function measurePauses(world: World, options: Options): Promise<BenchRow[]> {
  const { url, prefix } = world;
  const data = { url, prefix, scope: SCOPE, watchesPauses: true, waiting: 500 };
  const router = await Subscribers.start(1, data);
  try {
    await pass(1_000);
    router.pauses.length = 0;
    await pass(3_000);
    const idle = router.pauses.map(({ pauseMs }) => pauseMs);
    const turns: number[] = [];
    const swaps: Swap[] = [];
    for (let swap = 0; swap < options.swaps; swap += 1) {
      router.pauses.length = 0;
      const { epoch } = await world.point(100 + swap);
      await router.until('it swapped', () => router.appliedMs(epoch) !== undefined);
      const [swappedMs = 0] = router.appliedMs(epoch) ?? [];
      await router.until('it went on', () => router.pauses.some(({ atMs }) => atMs > swappedMs));
      turns.push(Math.max(...router.pauses.map(({ pauseMs }) => pauseMs)));
      swaps.push(...router.applied.map((applied) => applied.swap));
      router.applied.length = 0;
    }
    const undisturbed = swaps.filter(({ isInterrupted }) => !isInterrupted).map(({ ms }) => ms);
    const all = swaps.map(({ ms }) => ms);
    const metric = `swap to a new policy with ${data.waiting} requests waiting`;
    const left = `of ${undisturbed.length} during which no other program got the core`;
    const turn = 'longest turn of the event loop, waits for a core included';
    return [
      { metric: `${metric}, median of ${all.length}`, value: percentile(all, 0.5), unit: 'ms' },
      { metric: `${metric}, p99.9 of all ${all.length}`, value: percentile(all, 0.999), unit: 'ms' },
      {
        metric: `${metric}, p99.9 ${left}`,
        value: percentile(undisturbed, 0.999),
        unit: 'ms',
        target: 5,
        relation: '<=',
      },
      { metric: `${turn}, in 20 ms around a swap, median`, value: percentile(turns, 0.5), unit: 'ms' },
      { metric: `${turn}, in 20 ms around a swap, p99.9`, value: percentile(turns, 0.999), unit: 'ms' },
      { metric: `${turn}, in 20 ms without a swap, p99.9`, value: percentile(idle, 0.999), unit: 'ms' },
    ];
  } finally {
    await router.close();
  }
}

import { seededRandom } from '../../core/random/seeded-random.ts';
import { hindsightBound } from './hindsight-bound.ts';
import { type PoolSecond, sumSeconds } from './pool-book.ts';
import type { CreatePolicy } from './pool-policy.ts';
import type { PoolRequest } from './pool-request.ts';
import { type LoadStep, PoolTraffic } from './pool-traffic.ts';
import { type PoolScenario, simulatePool } from './simulate-pool.ts';

/** What all scenarios share: values a factor of e^0.5 apart, service times that predictions miss by a tenth, an SLA of 100 ms. */
const COMMON = { valueSigma: 0.5, noiseSigma: 0.1, slaMs: 100 } as const;
const CALM_LOAD = 0.8;
const CALM_S = 5;
const GOODPUT_S = 60;

export interface Goodput {
  /** Server time of answers that came in time, of all there was. */
  useful: number;
  /** Of what hindsight could have had, with deadlines relaxed. */
  value: number;
  /** The same, where all base work must come before any extra. */
  strictValue: number;
  /** Of the requests. */
  answered: number;
}

/** So many times the capacity for so long, after a calm start; clients do not retry. Its first moments count. */
export function measureGoodput(
  create: CreatePolicy,
  seed: number,
  options: GoodputOptions,
  bounds: Bounds = boundsOf(seed, options),
): Goodput {
  const { servers, seconds = GOODPUT_S } = options;
  const { seconds: all } = simulatePool(goodputScenario(options), create, seededRandom(seed));
  const sum = sumSeconds(all, CALM_S, CALM_S + seconds);
  return {
    useful: sum.usefulMs / (servers * seconds * 1_000),
    value: sum.value / bounds.value,
    strictValue: sum.value / bounds.strictValue,
    answered: sum.answered / sum.sent,
  };
}

/** What hindsight could have had in the time that a goodput is measured: of all policies that see this seed's requests. */
export function boundsOf(seed: number, options: GoodputOptions): Bounds {
  const { servers, seconds = GOODPUT_S } = options;
  const fromMs = CALM_S * 1_000;
  const toMs = fromMs + seconds * 1_000;
  const asked = requestsBetween(goodputScenario(options), seed, fromMs, toMs);
  // The last of them could still be served within the SLA.
  const capacityMs = servers * (toMs - fromMs + COMMON.slaMs);
  return {
    value: hindsightBound(asked, capacityMs),
    strictValue: hindsightBound(asked, capacityMs, 'strict'),
  };
}

export type Bounds = Pick<Goodput, 'value' | 'strictValue'>;

function goodputScenario(options: GoodputOptions): PoolScenario {
  const { servers, load = 2, seconds = GOODPUT_S, valueSigma = COMMON.valueSigma } = options;
  const until = CALM_S + seconds;
  const steps = burst(load, CALM_S, until);
  return { ...COMMON, valueSigma, servers, steps, endMs: (until + 1) * 1_000, retries: 0 };
}

export interface GoodputOptions {
  servers: number;
  load?: number;
  seconds?: number;
  valueSigma?: number;
}

/**
 * 10 s of twice the capacity, whose clients send up to three times again what fails or is late, and then the load of before.
 * @returns what was sent and answered in each second from the end of the burst on
 */
export function measureAfterBurst(
  create: CreatePolicy,
  seed: number,
  { servers, seconds }: { servers: number; seconds: number },
): readonly PoolSecond[] {
  const until = CALM_S + 10;
  // One second more, as an answer may come after a retry.
  const endMs = (until + seconds + 1) * 1_000;
  const scenario = { ...COMMON, servers, steps: burst(2, CALM_S, until), endMs, retries: 3 };
  return simulatePool(scenario, create, seededRandom(seed)).seconds.slice(until, until + seconds);
}

export interface Drift {
  /** The greatest change of a window's mean limit from that of the first, as a share of it. */
  limit: number;
  /** The same of the value answered per second. */
  value: number;
}

/** 1.2 times the capacity without end: whether what a controller lets in creeps away. The first window begins after a sixth of one. */
export function measureDrift(
  create: CreatePolicy,
  seed: number,
  { servers, hours, windows }: { servers: number; hours: number; windows: number },
): Drift {
  const seconds = hours * 3_600;
  const scenario = {
    ...COMMON,
    servers,
    steps: [{ fromMs: 0, load: 1.2 }],
    endMs: seconds * 1_000,
    retries: 0,
  };
  const all = simulatePool(scenario, create, seededRandom(seed)).seconds;
  const length = Math.floor(seconds / windows);
  const sums = Array.from({ length: windows }, (_, window) =>
    sumSeconds(all, window * length + (window === 0 ? Math.floor(length / 6) : 0), (window + 1) * length),
  );
  const [first] = sums;
  if (first === undefined) return { limit: 0, value: 0 };
  const most = (pick: (sum: PoolSecond) => number): number =>
    Math.max(...sums.map((sum) => Math.abs(pick(sum) / pick(first) - 1)));
  return { limit: most(({ limit }) => limit), value: most(({ value, sent }) => value / sent) };
}

function burst(load: number, fromS: number, untilS: number): LoadStep[] {
  return [
    { fromMs: 0, load: CALM_LOAD },
    { fromMs: fromS * 1_000, load },
    { fromMs: untilS * 1_000, load: CALM_LOAD },
  ];
}

/** The requests that a run of this seed brings, whatever serves them. */
function requestsBetween(scenario: PoolScenario, seed: number, fromMs: number, toMs: number): PoolRequest[] {
  const traffic = new PoolTraffic(scenario, seededRandom(seed));
  const requests: PoolRequest[] = [];
  for (let next = traffic.next(); next.sentMs < toMs; next = traffic.next())
    if (next.sentMs >= fromMs) requests.push(next);
  return requests;
}

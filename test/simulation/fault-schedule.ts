import type { RandomStream } from '../../src/ports/random.ts';

/** What is hit: the first process whose name starts so, of those that are up then. */
export const TARGETS = ['router', 'extractor', 'controller', 'cpu-0', 'cpu-1', 'gpu-0'] as const;
export type TargetName = (typeof TARGETS)[number];

/** Topics that may refuse records; the keys of `REFUSED` in fault-happens.ts. */
export const REFUSING = [
  'features',
  'dispatch',
  'scored-results',
  'acks',
  'pool-status',
  'dead-letters',
] as const;
export type RefusingTopic = (typeof REFUSING)[number];

/** Something that goes wrong at a moment; what has a length mends itself after it. All times are virtual ms. */
export type FaultEvent = { readonly atMs: number } & (
  | { readonly what: 'crash'; readonly host: TargetName; readonly forMs: number }
  | { readonly what: 'stop'; readonly host: TargetName; readonly forMs: number }
  | { readonly what: 'standby'; readonly host: TargetName; readonly forMs: number }
  | { readonly what: 'pool dies'; readonly pool: 'cpu' | 'gpu'; readonly forMs: number }
  | { readonly what: 'off the broker'; readonly host: TargetName; readonly forMs: number }
  | { readonly what: 'off the store'; readonly host: TargetName; readonly forMs: number }
  /** Records reach the host later, each partition's by a time of its own, so that partitions overtake each other. */
  | {
      readonly what: 'slow deliveries';
      readonly host: TargetName;
      readonly delayMs: number;
      readonly forMs: number;
    }
  /** Of what the host produces, every so many-th record is stored twice: its client did not hear that it had been. */
  | {
      readonly what: 'stored twice';
      readonly host: TargetName;
      readonly every: number;
      readonly forMs: number;
    }
  /** The host's next records come twice, under another assignment. */
  | { readonly what: 'delivered again'; readonly host: TargetName }
  | { readonly what: 'broker away'; readonly forMs: number }
  | { readonly what: 'topic refuses'; readonly topic: RefusingTopic; readonly forMs: number }
  | { readonly what: 'store away'; readonly back: 'as it was' | 'older' | 'empty'; readonly forMs: number }
  | { readonly what: 'hints lost'; readonly forMs: number }
  | { readonly what: 'clock jumps'; readonly host: TargetName | 'broker'; readonly byMs: number }
  /** The monotonic clock of the host runs faster or slower by this factor. */
  | { readonly what: 'clock drifts'; readonly host: TargetName; readonly rate: number }
  | { readonly what: 'registry away'; readonly forMs: number }
  | { readonly what: 'poison' }
  | { readonly what: 'garbage' }
  | { readonly what: 'flaky devices'; readonly share: number; readonly forMs: number }
  | {
      readonly what: 'slow devices';
      readonly pool: 'cpu' | 'gpu';
      readonly factor: number;
      readonly forMs: number;
    }
  /** The next version; the same one again where `again`; a text that is no policy where `bad`. */
  | { readonly what: 'publish'; readonly kind: 'next' | 'again' | 'bad' }
);

export type FaultKind = FaultEvent['what'];

/** All that a run depends on. */
export interface FaultSchedule {
  readonly seed: number;
  readonly topology: 'split' | 'fused';
  readonly deliveryDelayMs: number;
  readonly requests: number;
  /** Requests come at random moments of this span. */
  readonly spreadMs: number;
  readonly deadlinesMs: readonly number[];
  readonly events: readonly FaultEvent[];
}

/** Kinds as often as they are drawn; crashes and cuts more often, as they do the most. */
const WEIGHTS: Readonly<Record<FaultKind, number>> = {
  crash: 5,
  stop: 3,
  standby: 3,
  'pool dies': 1,
  'off the broker': 3,
  'off the store': 2,
  'slow deliveries': 3,
  'stored twice': 3,
  'delivered again': 3,
  'broker away': 1,
  'topic refuses': 3,
  'store away': 2,
  'hints lost': 2,
  'clock jumps': 2,
  'clock drifts': 2,
  'registry away': 1,
  poison: 2,
  garbage: 2,
  'flaky devices': 1,
  'slow devices': 2,
  publish: 4,
};

const EVENTS_MAX = 7;
const HOUR_MS = 3_600_000;
const LONG_MS = 2_500;

function pick<T>(chance: RandomStream, from: readonly T[]): T {
  const picked = from[chance.below(from.length)];
  if (picked === undefined) throw new Error('there is nothing to pick from');
  return picked;
}

const BAG: readonly FaultKind[] = Object.entries(WEIGHTS).flatMap(([kind, weight]) =>
  Array.from({ length: weight }, () => kind as FaultKind),
);

/** In a calm schedule nothing is done twice, so that what is done twice shows. */
const CALM: ReadonlySet<FaultKind> = new Set([
  'stop',
  'standby',
  'store away',
  'hints lost',
  'garbage',
  'publish',
]);
const CALM_BAG = BAG.filter((kind) => CALM.has(kind));
const CALM_SHARE = 0.3;

/** The schedule of a seed. */
export function drawSchedule(seed: number, draw: (name: string) => RandomStream): FaultSchedule {
  const chance = draw('schedule');
  const isShort = chance.next() < 0.4;
  const spreadMs = 300 + chance.below(700);
  const isCalm = chance.next() < CALM_SHARE;
  const events = Array.from({ length: 1 + chance.below(EVENTS_MAX) }, () =>
    isCalm ? drawEvent(chance, spreadMs, CALM_BAG, 'extractor') : drawEvent(chance, spreadMs, BAG),
  );
  return {
    seed,
    topology: chance.next() < 0.3 ? 'fused' : 'split',
    deliveryDelayMs: chance.below(4),
    requests: 12 + chance.below(20),
    spreadMs,
    deadlinesMs: isShort ? [100, 400, 2_000, 60_000] : [60_000],
    events: events.sort((a, b) => a.atMs - b.atMs),
  };
}

function drawEvent(
  chance: RandomStream,
  spreadMs: number,
  bag: readonly FaultKind[],
  only?: TargetName,
): FaultEvent {
  const atMs = chance.below(spreadMs);
  const host = only ?? pick(chance, TARGETS);
  // Short, or long enough that a session runs out.
  const forMs = chance.next() < 0.6 ? 10 + chance.below(400) : 1_500 + chance.below(LONG_MS);
  const what = pick(chance, bag);
  const pool = chance.next() < 0.6 ? 'cpu' : 'gpu';
  switch (what) {
    case 'crash':
    case 'stop':
    case 'standby':
      return { atMs, what, host, forMs };
    case 'off the broker':
    case 'off the store':
      return { atMs, what, host, forMs };
    case 'pool dies':
      return { atMs, what, pool, forMs };
    case 'slow deliveries':
      return { atMs, what, host, delayMs: 1 + chance.below(150), forMs };
    case 'stored twice':
      return { atMs, what, host, every: 1 + chance.below(3), forMs };
    case 'delivered again':
      return { atMs, what, host };
    case 'broker away':
    case 'hints lost':
    case 'registry away':
      return { atMs, what, forMs };
    case 'topic refuses':
      return { atMs, what, topic: pick(chance, REFUSING), forMs };
    case 'store away':
      return { atMs, what, back: pick(chance, ['as it was', 'older', 'empty']), forMs };
    case 'clock jumps': {
      const byMs = (chance.next() < 0.5 ? -1 : 1) * (1_000 + chance.below(HOUR_MS));
      return { atMs, what, host: chance.next() < 0.3 ? 'broker' : host, byMs };
    }
    case 'clock drifts':
      // NTP slews by 500 ppm at most; twice that is more than clocks do.
      return { atMs, what, host, rate: 1 + 0.0001 * (chance.below(21) - 10) };
    case 'poison':
    case 'garbage':
      return { atMs, what };
    case 'flaky devices':
      return { atMs, what, share: 0.05 * (1 + chance.below(4)), forMs };
    case 'slow devices':
      return { atMs, what, pool, factor: 2 + chance.below(9), forMs };
    case 'publish':
      return { atMs, what, kind: pick(chance, ['next', 'next', 'again', 'bad']) };
    default:
      return what satisfies never;
  }
}

/** Somebody dies, is cut off, or is told twice: work may be done twice. */
const DOES_TWICE: ReadonlySet<FaultKind> = new Set([
  'crash',
  'pool dies',
  'off the broker',
  'off the store',
  'slow deliveries',
  'stored twice',
  'delivered again',
  'broker away',
  'clock drifts',
]);
const LEAVES: ReadonlySet<FaultKind> = new Set(['stop', 'standby']);
/** Who is told to stop finishes first, unless it waits longer for something than it has time to. */
const HOLDS_UP: ReadonlySet<FaultKind> = new Set(['topic refuses', 'registry away']);

/**
 * Nothing happens in this schedule for which anything would be done twice. Routers and workers have queues: what waits there is given up when they stop,
 * and what overtook it is done again; extractors have none.
 */
export function isExact({ events, topology }: FaultSchedule): boolean {
  const has = (kinds: ReadonlySet<FaultKind>): boolean => events.some(({ what }) => kinds.has(what));
  if (has(DOES_TWICE)) return false;
  if (!has(LEAVES)) return true;
  const areExtractors = events.every(
    (event) => !LEAVES.has(event.what) || ('host' in event && event.host === 'extractor'),
  );
  return areExtractors && topology === 'split' && !has(HOLDS_UP);
}

/** Workers die or leave, or their heartbeats do not come through. */
const HIDES_WORKERS: ReadonlySet<FaultKind> = new Set([
  ...DOES_TWICE,
  ...LEAVES,
  'topic refuses',
  'registry away',
]);

export function hidesWorkers({ events }: FaultSchedule): boolean {
  return events.some(({ what }) => HIDES_WORKERS.has(what));
}

import type { OutcomeKind } from './outcome.ts';

/** A result as it lies on scored-results. */
export interface LedgerResult {
  /** Whose result it is: see `identityKey`. */
  identityKey: string;
  /** Where it lies on the results topic. */
  partition: number;
  offset: number;
  outcome: OutcomeKind;
  /** From the append of the request to the append of the result. */
  latencyMs: number;
}

export interface OutcomeCounts {
  scored: number;
  degraded: number;
  expired: number;
  rejected: number;
  deadLettered: number;
}

export interface LedgerSummary {
  /** Requests that reached ingress. */
  ingress: number;
  /** Visible results of these, by outcome. */
  outcomes: OutcomeCounts;
  /** Requests without a result. */
  inFlight: number;
  /** Results that a reader would take for a second answer: those of an identity that has one on another partition. */
  duplicatesVisible: number;
  /** Results after the first of their identity on its partition: readers drop them. */
  duplicatesDropped: number;
  /** Results of identities that never reached ingress. */
  unknown: number;
  /** Results that could not be read: whose they are is not known. */
  unreadable: number;
  /** Over the visible results, exact, by nearest rank; null without any. */
  latencyMs: { p50: number | null; p99: number | null };
  /** Every request on ingress has exactly one visible outcome: none is in flight, and nothing is visible twice, unknown or unreadable. */
  balanced: boolean;
}

/**
 * Keeps the books of the invariant: ingress = scored + degraded + expired + rejected + dead-lettered + in flight.
 * Records may come in any order and more than once: the same ingress record or the same (partition, offset) counts once.
 * The visible result of an identity is the one with the lowest offset. It remembers every identity, about 300 bytes each.
 */
export interface Ledger {
  ingress(identityKey: string): void;
  result(result: LedgerResult): void;
  /** A result that cannot be read, by where it lies. */
  unreadable(partition: number, offset: number): void;
  summary(): LedgerSummary;
}

/** What is kept of a result. */
type Kept = Omit<LedgerResult, 'identityKey'>;

/** What is known of one identity. */
interface Entry {
  reachedIngress: boolean;
  visible: Kept | undefined;
  /** All its results, visible one included, once there are several. */
  all: Kept[] | undefined;
}

export function createLedger(): Ledger {
  const entries = new Map<string, Entry>();
  const unreadable = new Set<string>();
  const entryOf = (key: string): Entry => {
    let entry = entries.get(key);
    if (entry === undefined) {
      entry = { reachedIngress: false, visible: undefined, all: undefined };
      entries.set(key, entry);
    }
    return entry;
  };
  return {
    ingress(key) {
      entryOf(key).reachedIngress = true;
    },
    result({ identityKey, partition, offset, outcome, latencyMs }) {
      addResult(entryOf(identityKey), { partition, offset, outcome, latencyMs });
    },
    unreadable(partition, offset) {
      unreadable.add(`${partition}/${offset}`);
    },
    summary: () => summarise(entries.values(), entries.size, unreadable.size),
  };
}

function addResult(entry: Entry, result: Kept): void {
  if (entry.visible === undefined) {
    entry.visible = result;
    return;
  }
  entry.all ??= [entry.visible];
  const known = entry.all.some(
    ({ partition, offset }) => partition === result.partition && offset === result.offset,
  );
  if (known) return;
  entry.all.push(result);
  if (comesBefore(result, entry.visible)) entry.visible = result;
}

/** By offset; the partition decides between offsets of two partitions, so that the order of arrival never does. */
function comesBefore(a: Kept, b: Kept): boolean {
  return a.offset !== b.offset ? a.offset < b.offset : a.partition < b.partition;
}

function summarise(entries: Iterable<Entry>, entriesMax: number, unreadable: number): LedgerSummary {
  const outcomes: OutcomeCounts = { scored: 0, degraded: 0, expired: 0, rejected: 0, deadLettered: 0 };
  const latencies = new Float64Array(entriesMax);
  let ingress = 0;
  let answered = 0;
  let duplicatesVisible = 0;
  let duplicatesDropped = 0;
  let unknown = 0;
  for (const { reachedIngress, visible, all } of entries) {
    const results = all?.length ?? (visible === undefined ? 0 : 1);
    if (!reachedIngress) {
      unknown += results;
      continue;
    }
    ingress += 1;
    if (visible === undefined) continue;
    outcomes[countOf(visible.outcome)] += 1;
    latencies[answered++] = visible.latencyMs;
    const partitions = all === undefined ? 1 : new Set(all.map(({ partition }) => partition)).size;
    duplicatesVisible += partitions - 1;
    duplicatesDropped += results - partitions;
  }
  const inFlight = ingress - answered;
  return {
    ingress,
    outcomes,
    inFlight,
    duplicatesVisible,
    duplicatesDropped,
    unknown,
    unreadable,
    latencyMs: percentiles(latencies.subarray(0, answered)),
    balanced: inFlight === 0 && duplicatesVisible === 0 && unknown === 0 && unreadable === 0,
  };
}

function countOf(outcome: OutcomeKind): keyof OutcomeCounts {
  return outcome === 'dead-lettered' ? 'deadLettered' : outcome;
}

/** Sorts the samples in place. */
function percentiles(samples: Float64Array): LedgerSummary['latencyMs'] {
  samples.sort();
  return { p50: nearestRank(samples, 0.5), p99: nearestRank(samples, 0.99) };
}

/** The smallest sample that at least the given share of them does not exceed. */
function nearestRank(sorted: Float64Array, share: number): number | null {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
}

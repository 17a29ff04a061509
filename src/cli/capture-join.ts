import type { PolicyDecision, RoutableRequest, ScoredResult } from '../contracts/records.ts';
import { createFirstResultFilter } from '../core/outcome/first-result-filter.ts';
import { identityKey } from '../core/outcome/identity.ts';

/** One line of a corpus, as `policy diff --corpus` reads it; what decided is for people and other tools. */
export interface CorpusLine {
  readonly signals: Readonly<Record<string, number | null>>;
  readonly context?: Readonly<Record<string, string>>;
  readonly leaf?: string;
  readonly arm?: PolicyDecision['arm'];
  readonly digest?: string;
}

export interface CaptureJoinOptions {
  /** Requests that are taken. */
  readonly max: number;
  /** Whether a request of this id belongs to the sample. */
  isSampled(requestId: string): boolean;
  onLine(line: CorpusLine): void;
}

/** Longer than any budget that a request should have: what has no result by then is written without its decision. */
export const DECISION_WAIT_MS = 30_000;
/** Of requests that wait for a result, and of results that came before their request. */
const WAITING_MAX = 100_000;

interface Waiting<T> {
  readonly what: T;
  readonly atMs: number;
}

/**
 * Brings requests and the decisions about them together by identity, whichever comes first. A request counts once, however often the features
 * topic has it; of several results the first one has the decision that answered. Decisions come from scored-results, not from the dispatch topics:
 * it is one topic whatever pools there are, scores are smaller than the requests' own bytes, and a hedge does not look like a second decision.
 */
export class CaptureJoin {
  /** Requests taken, with those that still wait. */
  accepted = 0;
  decided = 0;
  undecided = 0;
  readonly leaves = new Map<string, number>();
  readonly #options: CaptureJoinOptions;
  readonly #isFirst = createFirstResultFilter({ identitiesMax: 2 * WAITING_MAX });
  readonly #requests = new Map<string, Waiting<CorpusLine>>();
  readonly #results = new Map<string, Waiting<PolicyDecision | null>>();

  constructor(options: CaptureJoinOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#requests.size;
  }

  get isFull(): boolean {
    return this.accepted >= this.#options.max;
  }

  takeRequest(request: RoutableRequest, nowMs: number): void {
    if (this.isFull || !this.#options.isSampled(request.requestId)) return;
    const key = identityKey(request.identity);
    if (!this.#isFirst(key)) return;
    this.accepted += 1;
    const early = this.#results.get(key);
    if (early === undefined) {
      this.#requests.set(key, { what: lineOf(request), atMs: nowMs });
      this.#writeOldest();
      return;
    }
    this.#results.delete(key);
    this.#write(lineOf(request), early.what);
  }

  takeResult(result: ScoredResult, nowMs: number): void {
    if (!this.#options.isSampled(result.requestId)) return;
    const key = identityKey(result.identity);
    const waiting = this.#requests.get(key);
    if (waiting === undefined) {
      if (!this.isFull && !this.#results.has(key))
        this.#results.set(key, { what: result.policy, atMs: nowMs });
      dropOldest(this.#results);
      return;
    }
    this.#requests.delete(key);
    this.#write(waiting.what, result.policy);
  }

  /** Writes what waited too long without its decision, and forgets results whose request never came. */
  expire(nowMs: number): void {
    for (const [key, { what, atMs }] of this.#requests) {
      if (nowMs - atMs <= DECISION_WAIT_MS) break;
      this.#requests.delete(key);
      this.#write(what, null);
    }
    for (const [key, { atMs }] of this.#results) {
      if (nowMs - atMs <= DECISION_WAIT_MS) break;
      this.#results.delete(key);
    }
  }

  /** Writes all that wait without their decision. */
  flush(): void {
    for (const { what } of this.#requests.values()) this.#write(what, null);
    this.#requests.clear();
  }

  #writeOldest(): void {
    const oldest = dropOldest(this.#requests);
    if (oldest !== undefined) this.#write(oldest, null);
  }

  #write(line: CorpusLine, decision: PolicyDecision | null): void {
    if (decision === null) {
      this.undecided += 1;
      this.#options.onLine(line);
      return;
    }
    const { leaf, arm, digest } = decision;
    this.decided += 1;
    this.leaves.set(leaf, (this.leaves.get(leaf) ?? 0) + 1);
    this.#options.onLine({ ...line, leaf, arm, digest });
  }
}

function dropOldest<T>(waiting: Map<string, Waiting<T>>): T | undefined {
  if (waiting.size <= WAITING_MAX) return undefined;
  const [first] = waiting;
  if (first === undefined) return undefined;
  waiting.delete(first[0]);
  return first[1].what;
}

/** Signals and context only: no payload, no id, no bucket key. */
function lineOf({ signals, context }: RoutableRequest): CorpusLine {
  const written = Object.fromEntries(Object.entries(signals).map(([name, value]) => [name, writable(value)]));
  return Object.keys(context).length === 0 ? { signals: written } : { signals: written, context };
}

/** JSON has neither NaN, which is a missing signal, nor infinity: the largest numbers compare with all others as it does. */
function writable(value: number): number | null {
  if (Number.isNaN(value)) return null;
  return Math.min(Number.MAX_VALUE, Math.max(-Number.MAX_VALUE, value));
}

import { MillraceError } from '../../core/errors.ts';
import type { LoadedModel } from '../../ports/accelerator.ts';
import type { Cancel, Clock } from '../../ports/clock.ts';
import type { FeatureRows, FeatureSource } from '../../ports/feature-source.ts';
import { type SourcedRows, sourcedRows, type WantedRows } from './sourced-rows.ts';
import type { WorkerJob } from './worker-job.ts';

export interface FeatureReadsDeps {
  clock: Clock;
  /** None where the worker is not told of one: whatever is wanted of it is unavailable. */
  source: FeatureSource | undefined;
  /** How long a request may wait for its rows at most. */
  limitMs: number;
  /** A read of the source came to an end. */
  onRead(outcome: 'read' | 'failed', ms: number): void;
}

/** A job whose rows are wanted, and until when they are of use. */
export interface Reading {
  job: WorkerJob;
  wanted: readonly WantedRows[];
  predictedMs: number;
  /** Without its rows the job goes on by then. */
  untilMs: number;
}

interface Waiting extends Reading {
  then(rows: SourcedRows | MillraceError): void;
  cancel: Cancel;
}

/** Each is one round trip; those after them wait, so that a store that is slow is not asked for ever more. */
const READS_MAX = 4;
/** Of one read: what it brings is decoded in one go, and others wait meanwhile. */
const ROWS_MAX = 4_096;

/**
 * Rows that requests did not send, read from the feature source before the requests are queued: whatever runs meanwhile does, and no batch waits for them.
 * What wants rows in one turn of the event loop is read together.
 */
export class FeatureReads {
  readonly #deps: FeatureReadsDeps;
  readonly #waiting = new Set<Waiting>();
  #unread: Waiting[] = [];
  #reading = 0;
  #pumping = false;

  constructor(deps: FeatureReadsDeps) {
    this.#deps = deps;
  }

  get length(): number {
    return this.#waiting.size;
  }

  get predictedMs(): number {
    let sum = 0;
    for (const { predictedMs } of this.#waiting) sum += predictedMs;
    return sum;
  }

  hasAnyFor(model: LoadedModel): boolean {
    for (const { job } of this.#waiting) if (job.model === model) return true;
    return false;
  }

  /** @param then is called once, by `untilMs` at the latest, with the rows or with why the request is refused; never where the job is removed before */
  read(reading: Reading, then: Waiting['then']): void {
    const { clock, source, limitMs } = this.#deps;
    if (source === undefined) {
      then(outcomeOf(reading, unavailable('the worker has no feature source')));
      return;
    }
    const waitMs = Math.max(0, Math.min(limitMs, reading.untilMs - clock.monotonicMs()));
    const waiting: Waiting = {
      ...reading,
      then,
      cancel: clock.after(waitMs, () =>
        this.#end(waiting, unavailable(`the feature source did not answer within ${Math.round(waitMs)} ms`)),
      ),
    };
    this.#waiting.add(waiting);
    this.#unread.push(waiting);
    this.#pumpSoon();
  }

  /** Removes and returns what `match` picks. */
  remove(match: (job: WorkerJob) => boolean): WorkerJob[] {
    const removed = [...this.#waiting].filter(({ job }) => match(job));
    for (const waiting of removed) this.#forget(waiting);
    return removed.map(({ job }) => job);
  }

  #pumpSoon(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    this.#deps.clock.after(0, () => {
      this.#pumping = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { source } = this.#deps;
    while (source !== undefined && this.#reading < READS_MAX) {
      const together = this.#next();
      if (together.length === 0) return;
      void this.#read(source, together);
    }
  }

  /** Those that came first and still wait, as many as one read takes; one at least. */
  #next(): Waiting[] {
    const unread = this.#unread.filter((one) => this.#waiting.has(one));
    let rows = 0;
    let count = 0;
    for (const { wanted } of unread) {
      rows += wanted.reduce((sum, { ids }) => sum + ids.length, 0);
      if (count > 0 && rows > ROWS_MAX) break;
      count += 1;
    }
    this.#unread = unread.slice(count);
    return unread.slice(0, count);
  }

  async #read(source: FeatureSource, together: readonly Waiting[]): Promise<void> {
    const { clock, limitMs, onRead } = this.#deps;
    const startedMs = clock.monotonicMs();
    const queries = together.flatMap(({ wanted }) => wanted.map(({ source: { of }, ids }) => ({ of, ids })));
    this.#reading += 1;
    const answer = await source.read(queries, limitMs).catch((error: unknown) => failure(error));
    this.#reading -= 1;
    onRead(answer instanceof MillraceError ? 'failed' : 'read', clock.monotonicMs() - startedMs);
    let end = 0;
    for (const waiting of together) {
      const start = end;
      end += waiting.wanted.length;
      this.#end(waiting, answer instanceof MillraceError ? answer : answer.slice(start, end));
    }
    this.#pump();
  }

  #end(waiting: Waiting, answer: readonly FeatureRows[] | MillraceError): void {
    if (!this.#waiting.has(waiting)) return;
    this.#forget(waiting);
    waiting.then(outcomeOf(waiting, answer));
  }

  #forget(waiting: Waiting): void {
    waiting.cancel();
    this.#waiting.delete(waiting);
  }
}

function outcomeOf(
  { job, wanted }: Reading,
  answer: readonly FeatureRows[] | MillraceError,
): SourcedRows | MillraceError {
  try {
    return sourcedRows(wanted, answer, job.request);
  } catch (error) {
    if (error instanceof MillraceError) return error;
    throw error;
  }
}

/** Whatever a store's client throws, the requests are not at fault. */
function failure(error: unknown): MillraceError {
  return error instanceof MillraceError ? error : unavailable('the feature source failed', error);
}

function unavailable(what: string, cause?: unknown): MillraceError {
  return new MillraceError(
    'STORE_UNAVAILABLE',
    what,
    cause === undefined ? {} : { value: String(cause), cause },
  );
}

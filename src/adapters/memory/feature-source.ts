import { MillraceError } from '../../core/errors.ts';
import { fillRow, isStale, type StoredFeature } from '../../core/features/feature-row.ts';
import type { Clock } from '../../ports/clock.ts';
import type {
  EntityId,
  FeatureQuery,
  FeatureRows,
  FeatureSource,
  FeatureView,
  RowState,
} from '../../ports/feature-source.ts';
import { within } from '../../ports/within.ts';

/** A value of a feature; a text is one of the values that no row takes. */
export type FeatureValue = number | bigint | boolean | string | null | readonly (number | bigint | boolean)[];

export interface StoredRow {
  view: string;
  joinKey: string;
  id: EntityId;
  features: Readonly<Record<string, FeatureValue>>;
  /** When it was so, on the wall clock. */
  eventMs?: number | undefined;
}

/** A feature store in this process: what embedded runs, simulations and tests use. */
export interface MemoryFeatureSource extends FeatureSource {
  /** Features that the row does not name stay as they were. */
  put(row: StoredRow): void;
  /** From now on every answer takes so long. */
  delay(ms: number): void;
  /** From now on every call is refused with STORE_UNAVAILABLE. */
  stop(): void;
  start(): void;
}

interface Row {
  features: Record<string, FeatureValue>;
  eventMs: number | undefined;
}

export function memoryFeatureSource(
  clock: Pick<Clock, 'wallMs' | 'after'>,
  rows: Iterable<StoredRow> = [],
): MemoryFeatureSource {
  const source = new InMemory(clock);
  for (const row of rows) source.put(row);
  return source;
}

class InMemory implements MemoryFeatureSource {
  readonly #clock: Pick<Clock, 'wallMs' | 'after'>;
  /** By view and join key, then by id: a number and its text are two. */
  readonly #rows = new Map<string, Map<EntityId, Row>>();
  #delayMs = 0;
  #isAway = false;

  constructor(clock: Pick<Clock, 'wallMs' | 'after'>) {
    this.#clock = clock;
  }

  put({ view, joinKey, id, features, eventMs }: StoredRow): void {
    const key = keyOf(view, joinKey);
    const rows = this.#rows.get(key) ?? new Map<EntityId, Row>();
    const before = rows.get(id);
    this.#rows.set(key, rows.set(id, { features: { ...before?.features, ...features }, eventMs }));
  }

  delay(ms: number): void {
    this.#delayMs = ms;
  }

  stop(): void {
    this.#isAway = true;
  }

  start(): void {
    this.#isAway = false;
  }

  async read(queries: readonly FeatureQuery[], limitMs: number): Promise<FeatureRows[]> {
    const answer = new Promise<void>((resolve) => this.#clock.after(this.#delayMs, resolve));
    const inTime = await within(
      this.#clock,
      answer.then(() => true),
      limitMs,
      false,
    );
    if (!inTime || this.#isAway)
      throw new MillraceError('STORE_UNAVAILABLE', 'the feature store did not answer');
    return queries.map((query) => this.#rowsOf(query));
  }

  async close(): Promise<void> {
    this.#isAway = true;
  }

  #rowsOf({ of, ids }: FeatureQuery): FeatureRows {
    const values = new Float32Array(ids.length * of.width);
    const rows = this.#rows.get(keyOf(of.view, of.joinKey));
    const states = ids.map((id, k) =>
      this.#state(of, rows?.get(id), values.subarray(k * of.width, (k + 1) * of.width)),
    );
    return { values, states };
  }

  #state({ features, maxAgeMs }: FeatureView, row: Row | undefined, target: Float32Array): RowState {
    if (row === undefined) return 'missing';
    if (isStale(row.eventMs, this.#clock.wallMs(), maxAgeMs)) return 'stale';
    return fillRow(
      target,
      features.map((name) => storedOf(Object.hasOwn(row.features, name) ? row.features[name] : null)),
    );
  }
}

function keyOf(view: string, joinKey: string): string {
  return JSON.stringify([view, joinKey]);
}

function storedOf(value: FeatureValue | undefined): StoredFeature {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return 'no-number';
  return typeof value === 'object' ? value.map(Number) : [Number(value)];
}

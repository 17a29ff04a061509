import type { ChainableCommander, Redis } from 'ioredis';
import { MillraceError } from '../../core/errors.ts';
import { fillRow, isStale } from '../../core/features/feature-row.ts';
import type { Clock } from '../../ports/clock.ts';
import type {
  EntityId,
  FeatureQuery,
  FeatureRows,
  FeatureSource,
  FeatureView,
  RowState,
} from '../../ports/feature-source.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { within } from '../../ports/within.ts';
import { RedisConnection } from './connection.ts';
import { entityKey, eventField, featureField, readEventMs, readValue } from './feast-layout.ts';
import { ReplyBound } from './reply-bound.ts';

export interface RedisFeatureSourceOptions {
  /** `redis://` or `rediss://`, with user, password and database where needed. */
  url: string;
  /** Feast's name of the project. */
  project: string;
  clock: Clock;
  telemetry: Telemetry;
  /** Rows that may be under way at once; default 65 536. */
  rowsMax?: number;
}

const ROWS_MAX = 65_536;
/** A command that is not answered by then frees its place; nobody waits as long. */
const COMMAND_TIMEOUT_MS = 1_000;
/** The longest number of a protobuf, and what stands around a value in a reply. */
const NUMBER_BYTES = 11;
const FRAME_BYTES = 32;
const SLACK_BYTES = 16 * 1024 * 1024;

/** Feast's online store on Redis, read-only. It connects in the background: a Redis that is away delays nobody's start. */
export function redisFeatureSource(options: RedisFeatureSourceOptions): FeatureSource {
  return new RedisFeatureSource(options);
}

type Reply = readonly (Buffer | null)[];

/** The distinct entities of a query, and which of them each id is. */
interface Asked {
  of: FeatureView;
  distinct: EntityId[];
  places: number[];
}

class RedisFeatureSource implements FeatureSource {
  readonly #project: string;
  readonly #clock: Clock;
  readonly #connection: RedisConnection;
  readonly #bound: ReplyBound;
  readonly #rowsMax: number;
  /** Hashed once for each view of a model version. */
  readonly #fields = new WeakMap<FeatureView, (Buffer | string)[]>();
  #rowsUnderWay = 0;

  constructor({ url, project, clock, telemetry, rowsMax = ROWS_MAX }: RedisFeatureSourceOptions) {
    this.#project = project;
    this.#clock = clock;
    this.#rowsMax = rowsMax;
    const logger = telemetry.logger.child({ store: 'redis', purpose: 'features' });
    this.#connection = new RedisConnection({ url, commandTimeoutMs: COMMAND_TIMEOUT_MS, clock, logger });
    this.#bound = new ReplyBound(this.#connection.redis, SLACK_BYTES);
  }

  async read(queries: readonly FeatureQuery[], limitMs: number): Promise<FeatureRows[]> {
    const asked = queries.map(askOnce);
    const rows = asked.reduce((sum, { distinct }) => sum + distinct.length, 0);
    if (rows === 0) return asked.map((one) => this.#rowsOf(one, []));
    if (this.#rowsUnderWay + rows > this.#rowsMax)
      throw unavailable('too many rows are being read at once', {
        value: this.#rowsUnderWay + rows,
        allowed: `at most ${this.#rowsMax}`,
      });
    const late = Symbol('late');
    const replies = await within(this.#clock, this.#fetch(asked, rows), limitMs, late);
    if (typeof replies === 'symbol') throw unavailable(`Redis did not answer within ${limitMs} ms`);
    let end = 0;
    return asked.map((one) => {
      const from = end;
      end += one.distinct.length;
      return this.#rowsOf(one, replies.slice(from, end));
    });
  }

  async close(): Promise<void> {
    this.#connection.close();
  }

  /** Its rows stay under way until Redis answered or the connection is given up, whoever waits for them. */
  async #fetch(asked: readonly Asked[], rows: number): Promise<Reply[]> {
    this.#rowsUnderWay += rows;
    const came = this.#bound.expect(
      asked.reduce((sum, { of, distinct }) => sum + distinct.length * replyBytes(of), 0),
    );
    try {
      const results = await this.#connection.run((redis) => this.#pipeline(redis, asked).exec());
      return (results ?? []).map(replyOf);
    } finally {
      this.#rowsUnderWay -= rows;
      came();
    }
  }

  #pipeline(redis: Redis, asked: readonly Asked[]): ChainableCommander {
    const pipeline = redis.pipeline();
    for (const { of, distinct } of asked) {
      const fields = this.#fieldsOf(of);
      for (const id of distinct) pipeline.hmgetBuffer(entityKey(of.joinKey, id, this.#project), ...fields);
    }
    return pipeline;
  }

  #fieldsOf(of: FeatureView): (Buffer | string)[] {
    const known = this.#fields.get(of);
    if (known !== undefined) return known;
    const fields = [eventField(of.view), ...of.features.map((feature) => featureField(of.view, feature))];
    this.#fields.set(of, fields);
    return fields;
  }

  #rowsOf({ of, distinct, places }: Asked, replies: readonly Reply[]): FeatureRows {
    const { width } = of;
    const nowMs = this.#clock.wallMs();
    const read = new Float32Array(distinct.length * width);
    const states = distinct.map((_, k) =>
      stateOf(of, replies[k], nowMs, read.subarray(k * width, (k + 1) * width)),
    );
    if (distinct.length === places.length) return { values: read, states };
    const values = new Float32Array(places.length * width);
    places.forEach((place, k) => {
      values.set(read.subarray(place * width, (place + 1) * width), k * width);
    });
    return { values, states: places.map((place) => states[place] ?? 'missing') };
  }
}

function askOnce({ of, ids }: FeatureQuery): Asked {
  const placeOf = new Map<EntityId, number>();
  const places = ids.map((id) => {
    const place = placeOf.get(id) ?? placeOf.size;
    placeOf.set(id, place);
    return place;
  });
  return { of, distinct: [...placeOf.keys()], places };
}

function replyBytes({ width, features }: FeatureView): number {
  return width * NUMBER_BYTES + (features.length + 2) * FRAME_BYTES;
}

/** A key of another type holds no features: that is no store which is away. */
function replyOf([error, reply]: [error: Error | null, result: unknown]): Reply {
  if (error?.message.startsWith('WRONGTYPE')) return WRONG_TYPE;
  if (error !== null)
    throw unavailable('Redis refused to read features', { value: error.message, cause: error });
  return reply as Reply;
}

const WRONG_TYPE: Reply = [];

function stateOf(
  { features, maxAgeMs }: FeatureView,
  reply: Reply | undefined,
  nowMs: number,
  row: Float32Array,
): RowState {
  if (reply === WRONG_TYPE) return 'invalid';
  const [event, ...values] = reply ?? [];
  if (values.length !== features.length || values.every((value) => value === null)) return 'missing';
  if (isStale(event ? readEventMs(event) : undefined, nowMs, maxAgeMs)) return 'stale';
  return fillRow(
    row,
    values.map((value) => (value === null ? null : readValue(value))),
  );
}

function unavailable(what: string, detail: { value?: unknown; allowed?: string; cause?: unknown } = {}) {
  return new MillraceError('STORE_UNAVAILABLE', what, detail);
}

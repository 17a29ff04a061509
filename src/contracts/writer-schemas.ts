import avro from 'avsc';
import { MillraceError } from '../core/errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { SchemaRegistry } from '../ports/schema-registry.ts';
import { parseType } from './avro-type.ts';
import { compileWalker, type Walker } from './bounded.ts';
import { fingerprintOf } from './fingerprint.ts';
import type { DecodeLimits } from './limits.ts';

/** How records of one writer's schema become values of one reader's type. */
export interface Reading {
  readonly walk: Walker;
  /** Absent where the two schemas say the same: then the reader's type reads the bytes itself. */
  readonly resolver: ReturnType<avro.Type['createResolver']> | undefined;
}

/** Why no record of a writer's schema can be read. */
export interface Unusable {
  readonly unusable: string;
}

interface Writer {
  readonly type: avro.Type;
  readonly walk: Walker;
  readonly readings: Map<avro.Type, Reading | Unusable>;
  /** Computed when it is first asked for: a stranger's schema can be long. */
  fingerprint: string | undefined;
}

/** How a record names its writer's schema: by the id in its frame, and, unless it comes from a stock client, by a fingerprint as well. */
export interface SchemaName {
  readonly schemaId: number;
  readonly fingerprint?: string | undefined;
}

export type Learned = 'learned' | 'no-such-schema';

/** How long "no such schema" is believed; a writer may register its schema after its first record was seen. */
export const NO_SUCH_SCHEMA_MS = 30_000;
/** Other writers' schemas kept, and missing ids remembered; a hostile producer can name any number of them. */
const WRITERS_MAX = 1_024;

/**
 * Writers' schemas by registry id, compiled once. Looking up is single-flight per id; a missing id is remembered for a while,
 * a registry that does not answer never is. Where a record names its schema by a fingerprint as well, the id counts only if it stands for that
 * schema: a registry that lost its data gives ids anew, and who met an id before then knows it by what it meant.
 */
export class WriterSchemas {
  readonly #registry: SchemaRegistry;
  readonly #clock: Clock;
  readonly #limits: DecodeLimits;
  readonly #own = new Map<number, Writer>();
  readonly #others = new Map<number, Writer | Unusable>();
  /** By fingerprint: those that records named so. */
  readonly #named = new Map<string, Writer>();
  /** Name → when it may be asked for again, monotonic ms. */
  readonly #missing = new Map<string, number>();
  readonly #lookUps = new Map<string, Promise<Learned>>();

  constructor(registry: SchemaRegistry, clock: Clock, limits: DecodeLimits) {
    this.#registry = registry;
    this.#clock = clock;
    this.#limits = limits;
  }

  /** `id` is a schema of our own: records that carry it are read without a resolver. */
  adopt(id: number, type: avro.Type): void {
    this.#own.set(id, this.#writer(type));
    this.#missing.delete(keyOf({ schemaId: id }));
  }

  /** How `reader` reads what was written with itself. */
  readingOwn(reader: avro.Type): Reading {
    return { walk: compileWalker(reader, this.#limits), resolver: undefined };
  }

  /** How `reader` reads records of the schema of that name. */
  reading(name: SchemaName, reader: avro.Type): Reading | Unusable | 'unknown' | 'no-such-schema' {
    const writer = this.#find(name);
    if (writer === undefined) return this.#isMissing(keyOf(name)) ? 'no-such-schema' : 'unknown';
    if ('unusable' in writer) return writer;
    const known = writer.readings.get(reader);
    if (known !== undefined) return known;
    const made = resolve(writer, reader);
    writer.readings.set(reader, made);
    return made;
  }

  /** Fingerprint of the schema that an id stands for, as far as is known here. */
  fingerprintOf(id: number): string | undefined {
    const writer = this.#own.get(id) ?? this.#others.get(id);
    return writer === undefined || 'unusable' in writer ? undefined : fingerprint(writer);
  }

  /** @throws MillraceError REGISTRY_UNAVAILABLE: ask again later. */
  learn(name: SchemaName): Promise<Learned> {
    const key = keyOf(name);
    if (this.#find(name) !== undefined) return Promise.resolve('learned');
    if (this.#isMissing(key)) return Promise.resolve('no-such-schema');
    const pending = this.#lookUps.get(key);
    if (pending !== undefined) return pending;
    const lookUp = this.#lookUp(name).finally(() => this.#lookUps.delete(key));
    this.#lookUps.set(key, lookUp);
    return lookUp;
  }

  #find(name: SchemaName): Writer | Unusable | undefined {
    const { schemaId, fingerprint: wanted } = name;
    const writer = this.#own.get(schemaId) ?? this.#others.get(schemaId);
    if (wanted === undefined) return writer;
    const isMeant = writer !== undefined && !('unusable' in writer) && fingerprint(writer) === wanted;
    return isMeant ? writer : this.#named.get(wanted);
  }

  async #lookUp(name: SchemaName): Promise<Learned> {
    const { schemaId, fingerprint: wanted } = name;
    const schema = await this.#fetch(schemaId);
    const writer = typeof schema === 'string' ? this.#compile(schema) : schema;
    if (wanted === undefined && writer !== undefined) {
      remember(this.#others, schemaId, writer);
      return 'learned';
    }
    if (wanted !== undefined && writer !== undefined && !('unusable' in writer)) {
      if (fingerprint(writer) === wanted) {
        remember(this.#named, wanted, writer);
        return 'learned';
      }
    }
    remember(this.#missing, keyOf(name), this.#clock.monotonicMs() + NO_SUCH_SCHEMA_MS);
    return 'no-such-schema';
  }

  async #fetch(id: number): Promise<string | Unusable | undefined> {
    try {
      return await this.#registry.schemaById(id);
    } catch (error) {
      // the registry answered, with something that is no Avro schema: asking again does not change that
      if (error instanceof MillraceError && error.code === 'UNKNOWN_SCHEMA')
        return { unusable: error.message };
      throw error;
    }
  }

  #compile(schema: string): Writer | Unusable {
    try {
      return this.#writer(parseType(schema));
    } catch (error) {
      return { unusable: `its schema cannot be used: ${messageOf(error)}` };
    }
  }

  #writer(type: avro.Type): Writer {
    return { type, walk: compileWalker(type, this.#limits), readings: new Map(), fingerprint: undefined };
  }

  #isMissing(key: string): boolean {
    const untilMs = this.#missing.get(key);
    if (untilMs === undefined) return false;
    if (this.#clock.monotonicMs() < untilMs) return true;
    this.#missing.delete(key);
    return false;
  }
}

function keyOf({ schemaId, fingerprint: wanted }: SchemaName): string {
  return wanted === undefined ? String(schemaId) : `${schemaId}/${wanted}`;
}

function fingerprint(writer: Writer): string {
  writer.fingerprint ??= fingerprintOf(writer.type);
  return writer.fingerprint;
}

function resolve({ type, walk }: Writer, reader: avro.Type): Reading | Unusable {
  // the same canonical form is the same bytes: a stock client's copy without docs reads as fast as our own
  if (type === reader || type.equals(reader)) return { walk, resolver: undefined };
  try {
    return { walk, resolver: createResolver(type, reader) };
  } catch (error) {
    const field = unresolvedField(type, reader);
    const place = field === undefined ? '' : `.${field}`;
    return {
      unusable: `its schema does not resolve to ${reader.name ?? 'ours'}${place}: ${messageOf(error)}`,
    };
  }
}

/** The options are new each time: avsc keeps in them what it resolved, by name, and would hand it to the next schema of that name. */
function createResolver(writer: avro.Type, reader: avro.Type): NonNullable<Reading['resolver']> {
  return reader.createResolver(writer, { ignoreNamespaces: true });
}

/** The first field that both records have and that cannot be read: avsc names the types that do not fit, and not whose they are. */
function unresolvedField(writer: avro.Type, reader: avro.Type): string | undefined {
  if (!(writer instanceof avro.types.RecordType) || !(reader instanceof avro.types.RecordType))
    return undefined;
  return reader.fields.find(({ name, type }) => {
    const written = writer.field(name)?.type;
    return written !== undefined && !resolves(written, type);
  })?.name;
}

function resolves(writer: avro.Type, reader: avro.Type): boolean {
  try {
    createResolver(writer, reader);
    return true;
  } catch {
    return false;
  }
}

/** Adds to a map that keeps at most WRITERS_MAX entries and forgets the oldest. */
function remember<K, V>(map: Map<K, V>, key: K, value: V): void {
  map.set(key, value);
  if (map.size <= WRITERS_MAX) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}

const MESSAGE_LENGTH_MAX = 300;

/** What a library says about a schema can quote all of it. */
export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.length <= MESSAGE_LENGTH_MAX ? message : `${message.slice(0, MESSAGE_LENGTH_MAX - 1)}…`;
}

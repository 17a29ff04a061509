import { memorySchemaRegistry } from '../../src/adapters/memory/schema-registry.ts';
import { type Codecs, type CodecsOptions, createCodecs, type Decoded } from '../../src/contracts/codec.ts';
import type { Records } from '../../src/contracts/records.ts';
import { SCHEMAS } from '../../src/contracts/schemas.ts';
import { DISPATCH_TOPIC, type RecordName, TOPICS, type TopicDefinition } from '../../src/contracts/topics.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { SchemaRegistry } from '../../src/ports/schema-registry.ts';

export const RECORD_NAMES = Object.keys(SCHEMAS) as RecordName[];

/** One topic of each record. */
export const TOPIC_OF_EACH: ReadonlyMap<string, TopicDefinition> = new Map<string, TopicDefinition>([
  ...Object.entries(TOPICS).map(([key, definition]): [string, TopicDefinition] => [
    `millrace.${key}.v1`,
    definition,
  ]),
  ['millrace.dispatch.a100.v1', DISPATCH_TOPIC],
]);

export function definitionOf(record: RecordName): TopicDefinition {
  for (const definition of TOPIC_OF_EACH.values()) if (definition.record === record) return definition;
  throw new Error(`no topic carries ${record}`);
}

/** A clock that a test moves by hand; nothing is ever scheduled on it. */
export function handClock(): Clock & { nowMs: number } {
  return {
    nowMs: 0,
    wallMs() {
      return this.nowMs;
    },
    monotonicMs() {
      return this.nowMs;
    },
    after: () => () => undefined,
    every: () => () => undefined,
  };
}

/** Codecs with all schemas registered. */
export async function registeredCodecs(
  options: Partial<CodecsOptions> & { registry?: SchemaRegistry } = {},
): Promise<Codecs> {
  const codecs = createCodecs({ registry: memorySchemaRegistry(), clock: handClock(), ...options });
  await codecs.register(TOPIC_OF_EACH);
  return codecs;
}

/** Decodes as a stage does: learns the writer's schema where it is unknown. */
export async function decodeLearning<N extends RecordName>(
  codecs: Codecs,
  record: N,
  bytes: Buffer | null,
): Promise<Decoded<Records[N]>> {
  const decoded = codecs.for(record).decode(bytes);
  if (decoded.status !== 'schema-unknown') return decoded;
  await codecs.learn(decoded);
  return codecs.for(record).decode(bytes);
}

/** A value frame around a body. */
export function framed(schemaId: number, body: Uint8Array): Buffer {
  const frame = Buffer.alloc(5);
  frame.writeInt32BE(schemaId, 1);
  return Buffer.concat([frame, body]);
}

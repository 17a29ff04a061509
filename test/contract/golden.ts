import { readdirSync, readFileSync } from 'node:fs';
import { parseType } from '../../src/contracts/avro-type.ts';
import type { RecordName } from '../../src/contracts/topics.ts';

/** A value and its bytes under one version of its schema, as clients in any language must write and read it. */
export interface Golden {
  record: RecordName;
  /** JSON; bytes as `{"hex": "…"}`, numbers that JSON lacks as `{"number": "Infinity"}`. */
  value: unknown;
  /** Avro body in hex, without the frame. */
  body: string;
  /** As JSON text, in Avro's canonical form. */
  writerSchema: string;
}

const FOLDER = new URL('golden/', import.meta.url);

export function goldenFiles(): readonly string[] {
  return readdirSync(FOLDER).filter((file) => file.endsWith('.json'));
}

export function readGolden(file: string): Golden {
  return JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as Golden;
}

/** A schema without what does not change its bytes: docs, defaults, order of attributes. */
export function canonical(schema: string): string {
  return JSON.stringify(parseType(schema).schema());
}

export function toJson(value: unknown): unknown {
  if (value instanceof Uint8Array) return { hex: Buffer.from(value).toString('hex') };
  if (typeof value === 'number' && !Number.isFinite(value)) return { number: String(value) };
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, toJson(part)]));
}

export function fromJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromJson);
  if (typeof value !== 'object' || value === null) return value;
  if ('hex' in value && typeof value.hex === 'string') return Buffer.from(value.hex, 'hex');
  if ('number' in value && typeof value.number === 'string') return Number(value.number);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, fromJson(part)]));
}

import type { OutcomeSymbol } from '../../src/core/outcome/outcome.ts';
import { type Encode, requestFor, type StockClient } from './stock-client.ts';

/** What a case makes its record of. */
export interface Wire {
  /** Writes a request in the present schema, whatever its fields say. */
  encode: Encode;
  schemaId: number;
  stock: StockClient;
  ingress: string;
  /** A registry subject that no topic has: any schema can be registered there. */
  foreignSubject: string;
}

export interface SentRecord {
  /** The requestId unless given. */
  key?: Buffer | null;
  value: Buffer | null;
  headers?: Record<string, Buffer>;
}

/** One bad (or only odd) record, and what its sender is told. */
export interface InputCase {
  name: string;
  send(id: string, wire: Wire): SentRecord | Promise<SentRecord>;
  outcome: OutcomeSymbol;
  code?: string;
  /** What the message must name for its reader to understand. */
  says?: readonly string[];
  /** Under which id the result goes; the request's own unless given. */
  named?: 'by its place' | ((id: string) => string);
  /** Of a result that is a score. */
  scores?: number;
  /** Headers that the result has besides that of its schema. */
  resultHeaders?: Readonly<Record<string, Buffer>>;
}

/** A good request, but for these fields. */
export function odd(changes: Readonly<Record<string, unknown>>): InputCase['send'] {
  return (id, { encode }) => ({ value: encode(requestFor(id, changes)) });
}

/** A value that has nothing to do with the id. */
export function raw(value: Buffer | null, key?: Buffer | null): InputCase['send'] {
  return () => (key === undefined ? { value } : { key, value });
}

import {
  count,
  fields,
  list,
  MISFIT,
  type Misfit,
  number,
  oneOf,
  optional,
  parseJson,
  type Shape,
  text,
} from './json-shape.ts';
import type { CommandSignature, SignableCommand } from './verify-command.ts';

/** A signed command without its body, and when the broker appended it (ms since the epoch): the time that its signatures are judged by. */
export interface SignedEnvelope extends Omit<SignableCommand, 'body'> {
  readonly appendedMs: number;
}

/**
 * Who vouches for a policy, beside its text in the control store. `published`: people, by the command that published exactly this text. `tuned`: the
 * controller, which made the text by moving tunable constants of `root`, a policy that people published.
 */
export type PolicyEnvelope =
  | { readonly kind: 'published'; readonly command: SignedEnvelope }
  | { readonly kind: 'tuned'; readonly command: SignedEnvelope; readonly root: string };

/** A command that took a key out, with its body. */
export interface SignedRevocation extends SignedEnvelope {
  readonly body: Uint8Array;
}

/** Of the longest names and two signatures it has 8 KB. What is longer is padded: it would fill the disk of those who keep it. */
export const ENVELOPE_BYTES_MAX = 16 * 1024;
/** More than anybody has keys; a list that is longer is not read. */
const REVOCATIONS_MAX = 1_000;
export const REVOCATIONS_BYTES_MAX = 4 * 1024 * 1024;

const bytes: Shape<Uint8Array> = (value) =>
  typeof value === 'string' && /^(?:[0-9a-f]{2})*$/.test(value) ? fromHex(value) : MISFIT;
const signature: Shape<CommandSignature> = fields({
  keyId: text,
  notAfter: number(-Number.MAX_VALUE),
  nonce: text,
  version: count,
  bytes,
});
const envelopeFields = {
  commandId: text,
  scope: text,
  type: text,
  signature: optional(signature, null),
  coSignature: optional(signature, null),
  appendedMs: number(0),
};
export const signedEnvelopeShape: Shape<SignedEnvelope> = fields(envelopeFields);
const published = fields({ kind: oneOf(['published']), command: signedEnvelopeShape });
const tuned = fields({ kind: oneOf(['tuned']), command: signedEnvelopeShape, root: text });
const envelope: Shape<PolicyEnvelope> = (value) => {
  const read = published(value);
  return read === MISFIT ? tuned(value) : read;
};
const revocations: Shape<readonly SignedRevocation[]> = list(fields({ ...envelopeFields, body: bytes }));

/** As the control store and the router's disk keep it: JSON in UTF-8, signatures in hex. */
export function writeEnvelope(written: PolicyEnvelope): Uint8Array {
  return toJson({ ...written, command: plainCommand(written.command) });
}

/** MISFIT for what is no envelope of any version. Never throws. */
export function readEnvelope(json: Uint8Array): PolicyEnvelope | Misfit {
  return json.byteLength > ENVELOPE_BYTES_MAX ? MISFIT : fromJson(json, envelope);
}

export function writeRevocations(written: readonly SignedRevocation[]): Uint8Array {
  return toJson(written.map((each) => ({ ...plainCommand(each), body: toHex(each.body) })));
}

export function readRevocations(json: Uint8Array): readonly SignedRevocation[] | Misfit {
  const read = json.byteLength > REVOCATIONS_BYTES_MAX ? MISFIT : fromJson(json, revocations);
  return read !== MISFIT && read.length > REVOCATIONS_MAX ? MISFIT : read;
}

/** As JSON has it, and `signedEnvelopeShape` reads it: a Buffer would write itself in its own way. */
export function plainCommand({
  commandId,
  scope,
  type,
  signature,
  coSignature,
  appendedMs,
}: SignedEnvelope): object {
  const plain = (one: CommandSignature | null): unknown => one && { ...one, bytes: toHex(one.bytes) };
  return { commandId, scope, type, signature: plain(signature), coSignature: plain(coSignature), appendedMs };
}

function toJson(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

function fromJson<T>(json: Uint8Array, shape: Shape<T>): T | Misfit {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(json), shape);
  } catch {
    // not UTF-8
    return MISFIT;
  }
}

function toHex(read: Uint8Array): string {
  return Array.from(read, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function fromHex(hex: string): Uint8Array {
  return Uint8Array.from({ length: hex.length / 2 }, (_, n) =>
    Number.parseInt(hex.slice(2 * n, 2 * n + 2), 16),
  );
}

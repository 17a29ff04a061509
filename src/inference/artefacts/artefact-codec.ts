import { Buffer } from 'node:buffer';
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { MillraceError } from '../../core/errors.ts';
import { ELEMENT_BYTES, elementCount } from '../../core/request/tensor.ts';
import { ARTEFACT_BYTES_MAX } from '../../ports/artefact-store.ts';

/**
 * A request artefact as bytes, all numbers little-endian: `MRA` and the version of this form (1); the artefact's key (32 bytes) and the model's digest
 * (32); the number of tensors (UINT16); of each its name (UINT16 length, UTF-8), type (1: FP32, 2: INT64), rank (UINT8), sizes (UINT32 each), and values;
 * then HMAC-SHA-256 (RFC 2104) of all of it. A tensor with other values would be other scores and nobody would see it, so whoever lacks the secret can
 * make none, and no artefact passes for another one's.
 */
const MAGIC = Buffer.from('MRA');
const FORM_VERSION = 1;
const DIGEST_BYTES = 32;
const HEAD_BYTES = MAGIC.length + 1 + 2 * DIGEST_BYTES + 2;
const TYPE_CODES = { FP32: 1, INT64: 2 } as const;

/**
 * Why bytes are not taken:
 * - `not-an-artefact`: cut short, or something else altogether;
 * - `form-version`: of another version of millrace, older or newer;
 * - `seal`: changed, or made without the secret;
 * - `key`, `model`: an artefact of another request, or of another model;
 * - `layout`: other tensors than the model's candidate graph takes.
 */
export const ARTEFACT_REFUSALS = [
  'not-an-artefact',
  'form-version',
  'seal',
  'key',
  'model',
  'layout',
] as const;
export type ArtefactRefusal = (typeof ARTEFACT_REFUSALS)[number];

/** One of the layer inputs that an artefact consists of, as the candidate's graph takes it. */
export interface LayerInput {
  name: string;
  datatype: keyof typeof TYPE_CODES;
  /** `null` for a size that each request has for itself, such as that of a sequence. */
  shape: readonly (number | null)[];
}

export interface LayerTensor {
  name: string;
  datatype: keyof typeof TYPE_CODES;
  shape: number[];
  /** Little-endian, row-major. */
  contents: Buffer;
}

/** Which artefact it is. */
export interface ArtefactIdentity {
  /** 32 bytes, of `artefactKey`. */
  key: Uint8Array;
  /** `sha256:` and 64 hexadecimal digits. */
  modelDigest: string;
}

/** @throws MillraceError TOO_LARGE where it is longer than a store takes */
export function encodeArtefact(
  { key, modelDigest }: ArtefactIdentity,
  tensors: readonly LayerTensor[],
  secret: KeyObject,
): Buffer {
  const head = Buffer.concat([
    MAGIC,
    Buffer.of(FORM_VERSION),
    key,
    digestBytes(modelDigest),
    uint16(tensors.length),
  ]);
  const body = Buffer.concat([head, ...tensors.flatMap(tensorBytes)]);
  if (body.length + DIGEST_BYTES > ARTEFACT_BYTES_MAX)
    throw new MillraceError('TOO_LARGE', "the request's artefact is too long to be kept", {
      value: body.length + DIGEST_BYTES,
      allowed: `at most ${ARTEFACT_BYTES_MAX} bytes`,
    });
  return Buffer.concat([body, sealOf(body, secret)]);
}

/**
 * Takes no memory but for what it says: the tensors are views of the bytes.
 * @param layout in the order in which the artefact was made
 * @returns the tensors, or why they are not taken; it never throws, whatever the bytes
 */
export function decodeArtefact(
  bytes: Uint8Array,
  { key, modelDigest }: ArtefactIdentity,
  layout: readonly LayerInput[],
  secret: KeyObject,
): LayerTensor[] | ArtefactRefusal {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (all.length < HEAD_BYTES + DIGEST_BYTES || !all.subarray(0, MAGIC.length).equals(MAGIC))
    return 'not-an-artefact';
  if (all[MAGIC.length] !== FORM_VERSION) return 'form-version';
  const body = all.subarray(0, -DIGEST_BYTES);
  if (!timingSafeEqual(sealOf(body, secret), all.subarray(-DIGEST_BYTES))) return 'seal';
  const keyAt = MAGIC.length + 1;
  const digestAt = keyAt + DIGEST_BYTES;
  if (!body.subarray(keyAt, digestAt).equals(key)) return 'key';
  if (!body.subarray(digestAt, digestAt + DIGEST_BYTES).equals(digestBytes(modelDigest))) return 'model';
  return tensorsOf(body, layout) ?? 'layout';
}

/** The most bytes that an artefact of this layout can have. */
export function artefactBytesMax(layout: readonly LayerInput[]): number {
  const tensors = layout.map((input) => {
    const values = input.shape.reduce<number>((product, size) => product * (size ?? Infinity), 1);
    return startOf(input).length + 4 * input.shape.length + values * ELEMENT_BYTES[input.datatype];
  });
  const bytes = tensors.reduce((sum, each) => sum + each, HEAD_BYTES + DIGEST_BYTES);
  return Math.min(bytes, ARTEFACT_BYTES_MAX);
}

/** Against what is expected, part by part: what is left over, or reaches beyond the end, is as wrong as what is missing. */
function tensorsOf(body: Buffer, layout: readonly LayerInput[]): LayerTensor[] | undefined {
  let at = HEAD_BYTES;
  const tensors: LayerTensor[] = [];
  if (body.readUInt16LE(HEAD_BYTES - 2) !== layout.length) return undefined;
  for (const input of layout) {
    const start = startOf(input);
    const sizesAt = at + start.length;
    const valuesAt = sizesAt + 4 * input.shape.length;
    if (valuesAt > body.length || !body.subarray(at, sizesAt).equals(start)) return undefined;
    const shape = input.shape.map((_, axis) => body.readUInt32LE(sizesAt + 4 * axis));
    if (!input.shape.every((size, axis) => size === null || size === shape[axis])) return undefined;
    at = valuesAt + elementCount(shape) * ELEMENT_BYTES[input.datatype];
    const { name, datatype } = input;
    tensors.push({ name, datatype, shape, contents: body.subarray(valuesAt, at) });
  }
  return at === body.length ? tensors : undefined;
}

function tensorBytes(tensor: LayerTensor): Buffer[] {
  const { shape, contents } = tensor;
  return [startOf(tensor), ...shape.map(uint32), contents];
}

/** What stands before a tensor's sizes. */
function startOf({ name, datatype, shape }: LayerInput): Buffer {
  const text = Buffer.from(name);
  return Buffer.concat([uint16(text.length), text, Buffer.of(TYPE_CODES[datatype], shape.length)]);
}

/** With a key that was made once: a seal by a key's bytes takes four times as long. */
function sealOf(body: Uint8Array, secret: KeyObject): Buffer {
  return createHmac('sha256', secret).update(body).digest();
}

function digestBytes(modelDigest: string): Buffer {
  return Buffer.from(modelDigest.replace(/^sha256:/, ''), 'hex');
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

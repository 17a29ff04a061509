import { Buffer } from 'node:buffer';
import { createHash, type Hash } from 'node:crypto';
import type { Tensor } from '../../core/request/tensor.ts';

/** All that a request artefact depends on. */
export interface ArtefactOrigin {
  /** `sha256:` and 64 hexadecimal digits, of the model version. */
  modelDigest: string;
  /** What computes: backend, version of its runtime, kind of processor. Others round in other places. */
  computedBy: string;
  /** Who the request is about. */
  bucketKey: string;
  /** Of the request side, in any order. A changed request has other ones, and never an artefact of before. */
  requestTensors: readonly Tensor[];
}

/** 32 bytes, SHA-256: other bytes for whatever differs in the origin. */
export function artefactKey({ modelDigest, computedBy, bucketKey, requestTensors }: ArtefactOrigin): Buffer {
  const hash = createHash('sha256');
  for (const text of [modelDigest, computedBy, bucketKey]) addPart(hash, Buffer.from(text));
  const byName = [...requestTensors].sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const { name, datatype, shape, contents } of byName) {
    for (const text of [name, datatype, shape.join()]) addPart(hash, Buffer.from(text));
    addPart(hash, contents);
  }
  return hash.digest();
}

/** With its length before it, so that no two lists of parts are the same bytes. */
function addPart(hash: Hash, bytes: Uint8Array): void {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.byteLength);
  hash.update(length).update(bytes);
}

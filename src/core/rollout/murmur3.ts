import { Buffer } from 'node:buffer';

const C1 = 0xcc9e2d51;
const C2 = 0x1b873593;
const ASCII_MAX = 0x7f;

/**
 * murmur3_32 (x86) of bytes, unsigned.
 * Source: Austin Appleby, MurmurHash3.cpp (public domain).
 */
export function murmur3(bytes: Uint8Array, seed = 0): number {
  let h = seed | 0;
  let block = 0;
  for (let i = 0; i < bytes.length; i++) {
    block |= (bytes[i] ?? 0) << ((i & 3) << 3);
    if ((i & 3) === 3) {
      h = mixBlock(h, block);
      block = 0;
    }
  }
  return finish(h, block, bytes.length);
}

/**
 * murmur3_32 of prefix ‖ 0 ‖ text as UTF-8, unsigned, with seed 0. Texts of ASCII, as almost all keys are, are hashed in place
 * without a copy.
 */
export function murmur3OfPair(prefix: string, text: string): number {
  const start = prefix.length + 1;
  let h = 0;
  let block = 0;
  let seen = 0;
  let i = 0;
  for (; i + 4 <= prefix.length; i += 4) {
    const a = prefix.charCodeAt(i);
    const b = prefix.charCodeAt(i + 1);
    const c = prefix.charCodeAt(i + 2);
    const d = prefix.charCodeAt(i + 3);
    seen |= a | b | c | d;
    h = mixBlock(h, a | (b << 8) | (c << 16) | (d << 24));
  }
  // One block holds the rest of the prefix, the zero, and as much of the text as fits.
  for (; i < prefix.length; i++) {
    const unit = prefix.charCodeAt(i);
    seen |= unit;
    block |= unit << ((i & 3) << 3);
  }
  for (i = 0; ((start + i) & 3) !== 0 && i < text.length; i++) {
    const unit = text.charCodeAt(i);
    seen |= unit;
    block |= unit << (((start + i) & 3) << 3);
  }
  if (((start + i) & 3) === 0) {
    h = mixBlock(h, block);
    block = 0;
  }
  for (; i + 4 <= text.length; i += 4) {
    const a = text.charCodeAt(i);
    const b = text.charCodeAt(i + 1);
    const c = text.charCodeAt(i + 2);
    const d = text.charCodeAt(i + 3);
    seen |= a | b | c | d;
    h = mixBlock(h, a | (b << 8) | (c << 16) | (d << 24));
  }
  for (; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    seen |= unit;
    block |= unit << (((start + i) & 3) << 3);
  }
  if (seen > ASCII_MAX) return murmur3(Buffer.from(`${prefix}\0${text}`, 'utf8'));
  return finish(h, block, start + text.length);
}

function mixBlock(h: number, block: number): number {
  h ^= scramble(block);
  h = (h << 13) | (h >>> 19);
  return (Math.imul(h, 5) + 0xe6546b64) | 0;
}

function scramble(block: number): number {
  const k = Math.imul(block, C1);
  return Math.imul((k << 15) | (k >>> 17), C2);
}

function finish(h: number, rest: number, length: number): number {
  h ^= scramble(rest);
  h ^= length;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

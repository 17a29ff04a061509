/**
 * How much an LZ4 frame unpacks to, without unpacking it (github.com/lz4/lz4, lz4_Frame_format.md and lz4_Block_format.md): each sequence of a
 * block says how many bytes it adds. The size that a frame may announce proves nothing.
 */

const MAGIC = 0x184d2204;
const DESCRIPTOR_AT = 4;
const BLOCK_CHECKSUMS = 0x10;
const CONTENT_SIZE = 0x08;
const DICTIONARY = 0x01;
const STORED = 0x8000_0000;
const MATCH_LEAST = 4;

/** Counts up to a little more than `bytesMax`. @throws RangeError for bytes that are not a frame */
export function lz4UnpackedBytes(frames: Buffer, bytesMax: number): number {
  let total = 0;
  for (let at = 0; at < frames.length && total <= bytesMax; ) {
    if (uint32(frames, at) !== MAGIC) throw new RangeError('lz4: not a frame');
    const flags = frames.readUInt8(at + DESCRIPTOR_AT);
    const blockChecksumBytes = (flags & BLOCK_CHECKSUMS) === 0 ? 0 : 4;
    at += 7 + ((flags & CONTENT_SIZE) === 0 ? 0 : 8) + ((flags & DICTIONARY) === 0 ? 0 : 4);
    for (let size = uint32(frames, at); size !== 0 && total <= bytesMax; size = uint32(frames, at)) {
      at += 4;
      const isStored = size >= STORED;
      const length = isStored ? size - STORED : size;
      if (at + length > frames.length) throw outside();
      total += isStored ? length : blockBytes(frames, at, at + length, bytesMax - total);
      at += length + blockChecksumBytes;
    }
    // The end mark, and the checksum of the content.
    at += 4 + ((flags & 0x04) === 0 ? 0 : 4);
  }
  return total;
}

function blockBytes(frames: Buffer, start: number, end: number, bytesMax: number): number {
  let total = 0;
  let at = start;
  /** A length of 15 goes on in the bytes that follow, until one is not 255. */
  const rest = (length: number): number => {
    if (length < 15) return length;
    let sum = length;
    for (;;) {
      const byte = at < end ? frames[at++] : undefined;
      if (byte === undefined) throw outside();
      sum += byte;
      if (byte < 255) return sum;
    }
  };
  while (at < end && total <= bytesMax) {
    const token = frames[at++] ?? 0;
    const literals = rest(token >> 4);
    at += literals;
    total += literals;
    // The last sequence has no match.
    if (at >= end) break;
    at += 2;
    total += rest(token & 15) + MATCH_LEAST;
  }
  return total;
}

function uint32(frames: Buffer, at: number): number {
  if (at + 4 > frames.length) throw outside();
  return frames.readUInt32LE(at);
}

function outside(): RangeError {
  return new RangeError('lz4: the frame ends too early');
}

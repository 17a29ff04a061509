import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { constants, createGzip, createZstdCompress } from 'node:zlib';
import { compressFrame } from 'lz4-napi';
import { varint } from '../unit/adapters/kafka/batch-bytes.ts';

/** One record of zeros, packed; made piece by piece, so that whoever makes it takes no more memory than who should not. */

const PIECE = 4 * 2 ** 20;
const ZEROS = Buffer.alloc(PIECE);

/** The bytes of the record before and after a value of so many pieces. */
function around(pieces: number): { before: Buffer; after: Buffer } {
  const head = [0, ...varint(0), ...varint(0), ...varint(-1), ...varint(pieces * PIECE)];
  const length = varint(head.length + pieces * PIECE + 1);
  return { before: Buffer.from([...length, ...head]), after: Buffer.from(varint(0)) };
}

function* record(pieces: number): Generator<Buffer> {
  const { before, after } = around(pieces);
  yield before;
  for (let i = 0; i < pieces; i++) yield ZEROS;
  yield after;
}

export function gzipBomb(megabytes: number): Promise<Buffer> {
  return buffer(Readable.from(record(megabytes / 4)).pipe(createGzip({ level: 6 })));
}

export function zstdBomb(megabytes: number): Promise<Buffer> {
  const params = { [constants.ZSTD_c_compressionLevel]: 3 };
  return buffer(Readable.from(record(megabytes / 4)).pipe(createZstdCompress({ params })));
}

/** The blocks of a frame stand for themselves: one of zeros is repeated. */
export async function lz4Bomb(megabytes: number): Promise<Buffer> {
  const frame = await compressFrame(ZEROS);
  const { before, after } = around(megabytes / 4);
  const zeros = frame.subarray(7, -4);
  return Buffer.concat([
    frame.subarray(0, 7),
    storedBlock(before),
    ...Array<Buffer>(megabytes / 4).fill(zeros),
    storedBlock(after),
    Buffer.alloc(4),
  ]);
}

function storedBlock(bytes: Buffer): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(0x8000_0000 + bytes.length);
  return Buffer.concat([size, bytes]);
}

/** Snappy packs zeros to a 21st at best: copies of 64 bytes from the byte before. */
export async function snappyBomb(megabytes: number): Promise<Buffer> {
  const { before, after } = around(megabytes / 4);
  const literal = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from([(bytes.length - 1) << 2]), bytes]);
  // The first 64 bytes of the value stand there as they are.
  const copies = Buffer.alloc(((megabytes * 2 ** 20 - 64) / 64) * 3);
  for (let at = 0; at < copies.length; at += 3) copies.set([(63 << 2) | 2, 1, 0], at);
  const zeros = ZEROS.subarray(0, 32);
  const total = before.length + after.length + megabytes * 2 ** 20;
  return Buffer.concat([
    lengthOf(total),
    literal(before),
    literal(zeros),
    literal(zeros),
    copies,
    literal(after),
  ]);
}

function lengthOf(bytes: number): Buffer {
  const out: number[] = [];
  let left = bytes;
  for (; left >= 0x80; left >>>= 7) out.push((left & 0x7f) | 0x80);
  return Buffer.from([...out, left]);
}

import { promisify } from 'node:util';
import { gunzip, gzip, zstdCompress, zstdDecompress } from 'node:zlib';
import { lz4UnpackedBytes } from './lz4.ts';
import { snappyDecompress } from './snappy.ts';

/** Compresses and decompresses the records of one Kafka record batch. */
export interface Codec {
  /** Rejects where its code cannot be had on this machine: that says nothing about what is packed. */
  load?(): Promise<unknown>;
  compress(bytes: Buffer): Promise<Buffer>;
  /** Takes no more memory than `bytesMax` and what the packed bytes take. Rejects with UnpacksToMuch where they unpack to more, else where they are not packed. */
  decompress(bytes: Buffer, bytesMax: number): Promise<Buffer>;
}

export class UnpacksToMuch extends Error {
  constructor(bytesMax: number, cause?: unknown) {
    super(`unpacks to more than ${bytesMax} bytes`, { cause });
    this.name = 'UnpacksToMuch';
  }
}

type Decompress = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const gzipAsync = promisify<Buffer, Buffer>(gzip);
const gunzipAsync: Decompress = promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip);
const zstdCompressAsync = promisify<Buffer, Buffer>(zstdCompress);
const zstdDecompressAsync: Decompress = promisify<Buffer, { maxOutputLength: number }, Buffer>(
  zstdDecompress,
);

export const gzipped: Codec = {
  compress: (bytes) => gzipAsync(bytes),
  decompress: (bytes, bytesMax) => bounded(gunzipAsync, bytes, bytesMax),
};

export const zstd: Codec = {
  compress: (bytes) => zstdCompressAsync(bytes),
  decompress: (bytes, bytesMax) => bounded(zstdDecompressAsync, bytes, bytesMax),
};

/**
 * Kafka's lz4 is the frame format. Its library has no bound, so what a frame unpacks to is counted first. It is native code, which takes
 * memory of every process: it is loaded with the first batch that is packed so.
 */
export const lz4: Codec = {
  load: () => import('lz4-napi'),
  compress: async (bytes) => (await import('lz4-napi')).compressFrame(bytes),
  decompress: async (bytes, bytesMax) => {
    if (lz4UnpackedBytes(bytes, bytesMax) > bytesMax) throw new UnpacksToMuch(bytesMax);
    return (await import('lz4-napi')).decompressFrame(bytes);
  },
};

export const snappy: Codec = {
  compress: () => Promise.reject(new Error('Records are never written with snappy')),
  decompress: async (bytes, bytesMax) => {
    const unpacked = snappyDecompress(bytes, bytesMax);
    if (unpacked === undefined) throw new UnpacksToMuch(bytesMax);
    return unpacked;
  },
};

/** By the number that stands in a batch's attributes, where 0 is none. */
export const CODECS: ReadonlyMap<number, Codec> = new Map([
  [1, gzipped],
  [2, snappy],
  [3, lz4],
  [4, zstd],
]);

/** Node's own bound: reached piece by piece, before more is taken. */
async function bounded(decompress: Decompress, bytes: Buffer, bytesMax: number): Promise<Buffer> {
  try {
    return await decompress(bytes, { maxOutputLength: bytesMax });
  } catch (error) {
    const isTooMuch = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
    throw isTooMuch ? new UnpacksToMuch(bytesMax, error) : error;
  }
}

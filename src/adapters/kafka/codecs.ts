import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import { compressFrame, decompressFrame } from 'lz4-napi';
import { snappyDecompress } from './snappy.ts';

/** Compresses and decompresses the records of one Kafka record batch. */
export interface Codec {
  compress(bytes: Buffer): Promise<Buffer>;
  decompress(bytes: Buffer): Promise<Buffer>;
}

/** A batch is at most some megabytes on the wire; what unpacks to more than this is an attack. */
const DECOMPRESSED_BYTES_MAX = 256 * 2 ** 20;

const zstdCompressAsync = promisify(zstdCompress);
const zstdDecompressAsync = promisify<Buffer, { maxOutputLength: number }, Buffer>(zstdDecompress);

export const zstd: Codec = {
  compress: (bytes) => zstdCompressAsync(bytes),
  decompress: (bytes) => zstdDecompressAsync(bytes, { maxOutputLength: DECOMPRESSED_BYTES_MAX }),
};

/** Kafka's lz4 is the frame format. */
export const lz4: Codec = {
  compress: (bytes) => compressFrame(bytes),
  decompress: (bytes) => decompressFrame(bytes),
};

export const snappy: Codec = {
  compress: () => Promise.reject(new Error('Records are never written with snappy')),
  decompress: async (bytes) => snappyDecompress(bytes, DECOMPRESSED_BYTES_MAX),
};

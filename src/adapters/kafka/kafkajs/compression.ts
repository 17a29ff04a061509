import kafkajs, { type CompressionTypes } from 'kafkajs';
import { type Codec, lz4, snappy, zstd } from '../codecs.ts';

/** For other users of kafkajs in the process: the consumers of this adapter unpack by themselves, see fetch.ts. */
const UNPACKED_BYTES_MAX = 256 * 2 ** 20;

/** Teaches kafkajs, which knows gzip only, the other codecs of Kafka. A codec that somebody else registered stays. */
export function registerCodecs(): void {
  register(kafkajs.CompressionTypes.ZSTD, zstd);
  register(kafkajs.CompressionTypes.LZ4, lz4);
  register(kafkajs.CompressionTypes.Snappy, snappy);
}

function register(
  type: CompressionTypes.ZSTD | CompressionTypes.LZ4 | CompressionTypes.Snappy,
  codec: Codec,
): void {
  try {
    kafkajs.CompressionCodecs[type]();
  } catch {
    kafkajs.CompressionCodecs[type] = () => ({
      compress: (encoder: { buffer: Buffer }) => codec.compress(encoder.buffer),
      decompress: (bytes: Buffer) => codec.decompress(bytes, UNPACKED_BYTES_MAX),
    });
  }
}

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gzipped, lz4, snappy, UnpacksToMuch, zstd } from '../../../../src/adapters/kafka/codecs.ts';
import { lz4UnpackedBytes } from '../../../../src/adapters/kafka/lz4.ts';
import { snappyDecompress } from '../../../../src/adapters/kafka/snappy.ts';

const LIMIT = 10_000_000;

/** What a packer might have chosen to do: write bytes, or repeat some that were written before. */
type Step = { literal: Uint8Array } | { back: number; length: number };

const steps = fc.array(
  fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 300 }).map((literal): Step => ({ literal })),
    fc.record({ back: fc.nat(70_000), length: fc.integer({ min: 1, max: 64 }) }),
  ),
  { maxLength: 60 },
);

function lengthOf(bytes: number): number[] {
  const out = [];
  for (; bytes >= 0x80; bytes >>>= 7) out.push((bytes & 0x7f) | 0x80);
  return [...out, bytes];
}

/** Writes the steps in snappy's format, and does what they say. */
function pack(all: readonly Step[]): { packed: Buffer; plain: Buffer } {
  const out: number[] = [];
  const plain: number[] = [];
  for (const step of all) {
    if ('literal' in step) {
      const length = step.literal.length - 1;
      if (length < 60) out.push(length << 2);
      else if (length < 256) out.push(60 << 2, length);
      else out.push(61 << 2, length & 255, length >> 8);
      out.push(...step.literal);
      plain.push(...step.literal);
    } else if (plain.length > 0) {
      const offset = 1 + (step.back % plain.length);
      if (step.length >= 4 && step.length <= 11 && offset < 2_048) {
        out.push(((offset >> 8) << 5) | ((step.length - 4) << 2) | 1, offset & 255);
      } else if (offset < 65_536) out.push(((step.length - 1) << 2) | 2, offset & 255, offset >> 8);
      else
        out.push(
          ((step.length - 1) << 2) | 3,
          offset & 255,
          (offset >> 8) & 255,
          (offset >> 16) & 255,
          offset >>> 24,
        );
      for (let i = 0; i < step.length; i++) plain.push(plain[plain.length - offset] ?? 0);
    }
  }
  return { packed: Buffer.from([...lengthOf(plain.length), ...out]), plain: Buffer.from(plain) };
}

function xerial(blocks: readonly Buffer[]): Buffer {
  const header = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
  const framed = blocks.flatMap((block) => {
    const length = Buffer.alloc(4);
    length.writeInt32BE(block.length);
    return [length, block];
  });
  return Buffer.concat([header, ...framed]);
}

describe('snappy', () => {
  it('unpacks what any packer writes, overlapping copies included', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const { packed, plain } = pack(all);
        expect(snappyDecompress(packed, LIMIT)?.equals(plain)).toBe(true);
      }),
    );
  });

  it("unpacks the frames of Kafka's Java client", () => {
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 4 }), (blocks) => {
        const parts = blocks.map(pack);
        const unpacked = snappyDecompress(xerial(parts.map(({ packed }) => packed)), LIMIT);
        expect(unpacked?.equals(Buffer.concat(parts.map(({ plain }) => plain)))).toBe(true);
      }),
    );
  });

  it('refuses everything else with a RangeError, and never reads or writes outside', () => {
    fc.assert(
      fc.property(steps, fc.nat(), fc.nat(255), (all, at, byte) => {
        const { packed } = pack(all);
        packed[at % packed.length] = byte;
        try {
          snappyDecompress(packed, 100_000);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('refuses a bomb before it unpacks', async () => {
    expect(snappyDecompress(Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f, 0]), LIMIT)).toBeUndefined();
    const block = pack(Array.from({ length: 1_000 }, () => ({ literal: new Uint8Array(300) }))).packed;
    const bomb = xerial(Array(40).fill(block));
    expect(snappyDecompress(bomb, LIMIT)).toBeUndefined();
    await expect(snappy.decompress(bomb, LIMIT)).rejects.toThrow(UnpacksToMuch);
  });

  it('is never written', async () => {
    await expect(snappy.compress(Buffer.from('x'))).rejects.toThrow();
  });
});

describe.each([
  ['gzip', gzipped],
  ['zstd', zstd],
  ['lz4', lz4],
])('%s', (_, codec) => {
  it('brings back what it packed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 5_000 }), async (array) => {
        const plain = Buffer.from(array);
        expect((await codec.decompress(await codec.compress(plain), plain.length)).equals(plain)).toBe(true);
      }),
    );
  });

  it('rejects what is not packed', async () => {
    const rejected = codec.decompress(Buffer.from('this is no frame'), LIMIT);
    await expect(rejected).rejects.toThrow();
    await expect(rejected).rejects.not.toThrow(UnpacksToMuch);
  });

  it('takes what unpacks to just as much as allowed, and refuses one byte more', async () => {
    const packed = await codec.compress(Buffer.alloc(1_000_000));
    expect(await codec.decompress(packed, 1_000_000)).toHaveLength(1_000_000);
    await expect(codec.decompress(packed, 999_999)).rejects.toThrow(UnpacksToMuch);
  });
});

describe('what an lz4 frame unpacks to', () => {
  it('is counted without unpacking, whatever was packed', async () => {
    const repeated = fc.tuple(fc.uint8Array({ maxLength: 300 }), fc.nat(2_000)).map(([bytes, times]) => {
      return Buffer.concat(Array<Uint8Array>(times).fill(bytes));
    });
    await fc.assert(
      fc.asyncProperty(repeated, async (plain) => {
        const frame = await lz4.compress(plain);
        expect(lz4UnpackedBytes(frame, Number.POSITIVE_INFINITY)).toBe(plain.length);
      }),
    );
  });

  it('is the sum of several frames', async () => {
    const frames = Buffer.concat([
      await lz4.compress(Buffer.alloc(9)),
      await lz4.compress(Buffer.alloc(70_000)),
    ]);
    expect(lz4UnpackedBytes(frames, LIMIT)).toBe(70_009);
  });

  it('is not counted further than it matters, and never read outside', async () => {
    const frame = await lz4.compress(Buffer.alloc(5_000_000));
    expect(lz4UnpackedBytes(frame, 100_000)).toBeGreaterThan(100_000);
    fc.assert(
      fc.property(fc.nat(), fc.nat(255), fc.nat(), (at, byte, end) => {
        const broken = Buffer.from(frame.subarray(0, end % (frame.length + 1)));
        if (broken.length > 0) broken[at % broken.length] = byte;
        try {
          lz4UnpackedBytes(broken, LIMIT);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

/**
 * Snappy's raw format (github.com/google/snappy, format_description.txt) and the frames that Kafka's Java client wraps it in (xerial's:
 * magic, two versions, then blocks of int32 length and raw snappy). Unpacking only: millrace never writes it.
 */

const XERIAL_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);
const XERIAL_HEADER_BYTES = 16;

/** Answers undefined for what unpacks to more than `bytesMax`. @throws RangeError for bytes that are not snappy */
export function snappyDecompress(input: Buffer, bytesMax: number): Buffer | undefined {
  if (!input.subarray(0, XERIAL_MAGIC.length).equals(XERIAL_MAGIC)) return decompressBlock(input, bytesMax);
  const blocks: Buffer[] = [];
  let total = 0;
  for (let at = XERIAL_HEADER_BYTES; at < input.length; ) {
    const length = input.readInt32BE(at);
    at += 4;
    if (length < 0 || at + length > input.length)
      throw new RangeError(`snappy: a block of ${length} bytes ends outside of its frame`);
    const block = decompressBlock(input.subarray(at, at + length), bytesMax - total);
    if (block === undefined) return undefined;
    total += block.length;
    blocks.push(block);
    at += length;
  }
  return Buffer.concat(blocks, total);
}

function decompressBlock(input: Buffer, bytesMax: number): Buffer | undefined {
  const header = readLength(input);
  if (header.length > bytesMax) return undefined;
  const output = Buffer.allocUnsafe(header.length);
  let from = header.next;
  let to = 0;
  while (from < input.length) {
    const tag = byteAt(input, from++);
    const kind = tag & 3;
    if (kind === 0) {
      const literal = readLiteral(input, tag, from);
      if (literal.start + literal.length > input.length || to + literal.length > output.length)
        throw outside();
      input.copy(output, to, literal.start, literal.start + literal.length);
      from = literal.start + literal.length;
      to += literal.length;
      continue;
    }
    const copy = readCopy(input, tag, from);
    from = copy.next;
    to = repeat(output, to, copy.offset, copy.length);
  }
  if (to !== output.length) throw new RangeError(`snappy: ${to} bytes where ${output.length} were announced`);
  return output;
}

/** The unpacked length: a little-endian base-128 number of at most five bytes. */
function readLength(input: Buffer): { length: number; next: number } {
  let length = 0;
  for (let index = 0; index < 5; index++) {
    const byte = byteAt(input, index);
    length += (byte & 0x7f) * 2 ** (7 * index);
    if (byte < 0x80) return { length, next: index + 1 };
  }
  throw new RangeError('snappy: the length has no end');
}

function readLiteral(input: Buffer, tag: number, at: number): { start: number; length: number } {
  const short = tag >> 2;
  if (short < 60) return { start: at, length: short + 1 };
  const bytes = short - 59;
  if (at + bytes > input.length) throw outside();
  return { start: at + bytes, length: input.readUIntLE(at, bytes) + 1 };
}

function readCopy(input: Buffer, tag: number, at: number): { offset: number; length: number; next: number } {
  switch (tag & 3) {
    case 1:
      return { length: ((tag >> 2) & 7) + 4, offset: ((tag >> 5) << 8) | byteAt(input, at), next: at + 1 };
    case 2:
      return {
        length: (tag >> 2) + 1,
        offset: byteAt(input, at) | (byteAt(input, at + 1) << 8),
        next: at + 2,
      };
    default:
      if (at + 4 > input.length) throw outside();
      return { length: (tag >> 2) + 1, offset: input.readUInt32LE(at), next: at + 4 };
  }
}

/** Copies from what was unpacked before; source and target may overlap, which repeats a pattern. */
function repeat(output: Buffer, to: number, offset: number, length: number): number {
  if (offset === 0 || offset > to || to + length > output.length) throw outside();
  if (offset >= length) output.copyWithin(to, to - offset, to - offset + length);
  else for (let index = 0; index < length; index++) output[to + index] = output[to - offset + index] ?? 0;
  return to + length;
}

function byteAt(input: Buffer, at: number): number {
  const byte = input[at];
  if (byte === undefined) throw outside();
  return byte;
}

function outside(): RangeError {
  return new RangeError('snappy: a literal or a copy lies outside of its block');
}

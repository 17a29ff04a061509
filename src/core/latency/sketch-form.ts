/** A sketch has a place for each bin between its lowest and its highest; bins of 1 % reach from 10⁻³⁵ to 10³⁵ ms here. */
export const BIN_MAX = 4_096;

/**
 * Whether bytes are a DDSketch (https://github.com/DataDog/sketches-java, DDSketch.proto) that can be read and merged with others of this `gamma`: each
 * field once, whole counts, nothing below 0, and bins within ±BIN_MAX. To be asked before the library reads them: it makes room for every bin, and a
 * few bytes can name one that is gigabytes away.
 */
export function isSketch(bytes: Uint8Array, gamma: number): boolean {
  const sketch = fieldsOf(bytes);
  if (sketch === undefined) return false;
  const [mapping, positive, negative] = [1, 2, 3].map((field) => {
    const value = sketch.get(field) ?? new Uint8Array(0);
    return typeof value === 'number' ? undefined : fieldsOf(value);
  });
  if (mapping?.get(1) !== gamma || (mapping.get(2) ?? 0) !== 0 || (mapping.get(3) ?? 0) !== 0) return false;
  const counts = positive && countsOf(positive);
  const none = negative && countsOf(negative);
  const zeros = sketch.get(4) ?? 0;
  if (counts === undefined || none === undefined || typeof zeros !== 'number' || none.length > 0)
    return false;
  const all = [zeros, ...counts];
  return (
    all.every((count) => Number.isSafeInteger(count) && count >= 0) &&
    Number.isSafeInteger(all.reduce((sum, count) => sum + count, 0))
  );
}

/** The counts of a store whose bins are within the bounds; bins that it lists one by one the library would lose. */
function countsOf(store: Fields): number[] | undefined {
  const [listed, packed = new Uint8Array(0), first = 0] = [1, 2, 3].map((field) => store.get(field));
  if (listed !== undefined || typeof packed === 'number' || typeof first !== 'number') return undefined;
  const length = packed.byteLength / DOUBLE_BYTES;
  const from = first % 2 === 0 ? first / 2 : -(first + 1) / 2;
  if (!Number.isInteger(length) || from < -BIN_MAX || from + length > BIN_MAX) return undefined;
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  return Array.from({ length }, (_, index) => view.getFloat64(index * DOUBLE_BYTES, true));
}

const DOUBLE_BYTES = 8;
const VARINT_BYTES_MAX = 5;

/** By number. */
type Fields = ReadonlyMap<number, number | Uint8Array>;

/** Fields of one protobuf message: varints, doubles, and what has a length. Undefined for what is none, or has a field twice. */
function fieldsOf(bytes: Uint8Array): Fields | undefined {
  const fields = new Map<number, number | Uint8Array>();
  for (let at = 0; at < bytes.length; ) {
    const key = varint(bytes, at);
    const read = key && contentOf(bytes, key.end, key.value % 8);
    const field = key && Math.floor(key.value / 8);
    if (read === undefined || field === undefined || fields.has(field)) return undefined;
    fields.set(field, read.value);
    at = read.end;
  }
  return fields;
}

function contentOf(
  bytes: Uint8Array,
  at: number,
  wireType: number,
): { value: number | Uint8Array; end: number } | undefined {
  if (wireType === 0) return varint(bytes, at);
  if (wireType === 1) {
    const end = at + DOUBLE_BYTES;
    if (end > bytes.length) return undefined;
    return { value: new DataView(bytes.buffer, bytes.byteOffset + at).getFloat64(0, true), end };
  }
  const length = wireType === 2 ? varint(bytes, at) : undefined;
  if (length === undefined || length.end + length.value > bytes.length) return undefined;
  const end = length.end + length.value;
  return { value: bytes.subarray(length.end, end), end };
}

function varint(bytes: Uint8Array, at: number): { value: number; end: number } | undefined {
  let value = 0;
  for (let index = 0; index < VARINT_BYTES_MAX; index++) {
    const byte = bytes[at + index];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * 2 ** (7 * index);
    if (byte < 0x80) return { value, end: at + index + 1 };
  }
  return undefined;
}

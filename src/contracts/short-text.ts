/** Where to read or write within a record's bytes. */
export interface Cursor {
  readonly buf: Buffer;
  pos: number;
}

/** Longer texts are rarely the same twice. */
const CACHED_LENGTH_MAX = 32;
const CACHE_SIZE = 1_024;
/** Lengths up to here take one byte as an Avro long. */
const ONE_BYTE_LENGTH_MAX = 63;

/** Texts read lately, by a hash of some of their bytes; a newer one takes the place of an older one. */
const lately: string[] = new Array<string>(CACHE_SIZE).fill('');

/**
 * The UTF-8 text of `length` bytes at the cursor, which moves past it. Field names, pools, kernels, signals come again with every record:
 * such a text is found by comparing its bytes, a third of what making it anew costs, and is the same string to the engine each time it becomes a key.
 * Only ASCII is ever found so: another text has fewer characters than bytes.
 */
export function readText(cursor: Cursor, length: number): string {
  const { buf, pos } = cursor;
  cursor.pos = pos + length;
  if (length > CACHED_LENGTH_MAX || length < 1) return buf.toString('utf8', pos, pos + length);
  const place = placeOf(buf, pos, length);
  const known = lately[place];
  if (known !== undefined && liesAt(known, buf, pos, length)) return known;
  const text = buf.toString('utf8', pos, pos + length);
  lately[place] = text;
  return text;
}

/** Writes length and text where it is ASCII, short, and fits; otherwise writes nothing that counts and answers false. */
export function writeShortText(cursor: Cursor, text: string): boolean {
  const { buf, pos } = cursor;
  const { length } = text;
  if (length > ONE_BYTE_LENGTH_MAX || pos + 1 + length > buf.length) return false;
  for (let i = 0; i < length; i += 1) {
    const code = text.charCodeAt(i);
    if (code >= 0x80) return false;
    buf[pos + 1 + i] = code;
  }
  buf[pos] = length << 1;
  cursor.pos = pos + 1 + length;
  return true;
}

function placeOf(bytes: Buffer, start: number, length: number): number {
  const first = bytes[start] ?? 0;
  const middle = bytes[start + (length >> 1)] ?? 0;
  const last = bytes[start + length - 1] ?? 0;
  return (first * 31 + middle * 1_031 + last * 131 + length * 2_057) & (CACHE_SIZE - 1);
}

function liesAt(text: string, bytes: Buffer, start: number, length: number): boolean {
  if (text.length !== length) return false;
  for (let i = 0; i < length; i += 1) if (text.charCodeAt(i) !== bytes[start + i]) return false;
  return true;
}

import type avro from 'avsc';

/** The polynomial of CRC-64-AVRO, which is also what it starts from, as two words. */
const EMPTY_HIGH = 0xc15d213a;
const EMPTY_LOW = 0xa4d7a795;

const TABLE = makeTable();

/**
 * What names a schema wherever it is registered: CRC-64-AVRO of its Parsing Canonical Form, as 16 hexadecimal digits. Docs, defaults and logical
 * types play no part in it, for they do not change how bytes are read. Source: Avro 1.12 specification, "Schema Fingerprints".
 */
export function fingerprintOf(type: avro.Type): string {
  let high = EMPTY_HIGH;
  let low = EMPTY_LOW;
  for (const byte of Buffer.from(JSON.stringify(type.schema()))) {
    const place = ((low ^ byte) & 0xff) * 2;
    low = ((low >>> 8) | (high << 24)) ^ (TABLE[place + 1] ?? 0);
    high = (high >>> 8) ^ (TABLE[place] ?? 0);
  }
  return hex(high) + hex(low);
}

/** High and low word by turns. */
function makeTable(): Int32Array {
  const table = new Int32Array(512);
  for (let byte = 0; byte < 256; byte += 1) {
    let high = 0;
    let low = byte;
    for (let bit = 0; bit < 8; bit += 1) {
      const isOdd = (low & 1) === 1;
      low = (low >>> 1) | (high << 31);
      high >>>= 1;
      if (isOdd) {
        high ^= EMPTY_HIGH;
        low ^= EMPTY_LOW;
      }
    }
    table.set([high, low], byte * 2);
  }
  return table;
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0');
}

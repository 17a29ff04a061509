import { describe, expect, it } from 'vitest';
import { parseType } from '../../../src/contracts/avro-type.ts';
import { fingerprintOf } from '../../../src/contracts/fingerprint.ts';

const RECORD = '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"long"}]}';

describe('the fingerprint of a schema', () => {
  // The first three are test vectors of Avro itself (share/test/data/schema-tests.txt).
  it.each([
    ['"null"', '63dd24e7cc258f8a'],
    ['"int"', '7275d51a3f395c8f'],
    ['"string"', '8f014872634503c7'],
    ['{"type":"string","doc":"a text"}', '8f014872634503c7'],
  ])('of %s is what Avro says', (schema, fingerprint) => {
    expect(fingerprintOf(parseType(schema))).toBe(fingerprint);
  });

  it.each([
    ['a doc', RECORD.replace('"name":"R"', '"name":"R","doc":"what it is"')],
    ['a default', RECORD.replace('"type":"long"', '"type":"long","default":1')],
    ['a logical type', RECORD.replace('"long"', '{"type":"long","logicalType":"timestamp-millis"}')],
    ['where its namespace stands', RECORD.replace('"R","namespace":"n"', '"n.R"')],
  ])('does not change with %s', (_what, schema) => {
    expect(schema).not.toBe(RECORD);
    expect(fingerprintOf(parseType(schema))).toBe(fingerprintOf(parseType(RECORD)));
  });

  it.each([
    ['the name of a field', RECORD.replace('"a"', '"b"')],
    ['a type', RECORD.replace('"long"', '"int"')],
    ['the namespace', RECORD.replace('"n"', '"m"')],
  ])('changes with %s', (_what, schema) => {
    expect(fingerprintOf(parseType(schema))).not.toBe(fingerprintOf(parseType(RECORD)));
  });
});

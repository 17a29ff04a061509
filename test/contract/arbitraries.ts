import avro from 'avsc';
import fc from 'fast-check';
import { LONG_MAX, LONG_MIN, parseType } from '../../src/contracts/avro-type.ts';
import type { Records } from '../../src/contracts/records.ts';
import { SCHEMAS } from '../../src/contracts/schemas.ts';
import type { RecordName } from '../../src/contracts/topics.ts';

const FORBIDDEN_KEYS = ['__proto__', 'constructor', 'prototype'];

/** Any value of a record's schema. */
export function arbitraryRecord<N extends RecordName>(record: N): fc.Arbitrary<Records[N]> {
  return arbitraryValue(parseType(SCHEMAS[record])) as fc.Arbitrary<Records[N]>;
}

/** Any value of a type that is not recursive. */
export function arbitraryValue(type: avro.Type): fc.Arbitrary<unknown> {
  if (type instanceof avro.types.RecordType) {
    return fc.record(
      Object.fromEntries(type.fields.map((field) => [field.name, arbitraryValue(field.type)])),
    );
  }
  if (type instanceof avro.types.ArrayType) return fc.array(arbitraryValue(type.itemsType), { maxLength: 6 });
  if (type instanceof avro.types.MapType) {
    const key = fc
      .string({ unit: 'grapheme', maxLength: 12 })
      .filter((text) => !FORBIDDEN_KEYS.includes(text));
    return fc.dictionary(key, arbitraryValue(type.valuesType), { maxKeys: 6, noNullPrototype: true });
  }
  if (type instanceof avro.types.UnwrappedUnionType) return fc.oneof(...type.types.map(arbitraryValue));
  if (type instanceof avro.types.EnumType) return fc.constantFrom(...type.symbols);
  return arbitraryScalar(type.typeName);
}

function arbitraryScalar(typeName: string): fc.Arbitrary<unknown> {
  switch (typeName) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'int':
      return fc.integer();
    case 'long':
      return fc.oneof(fc.integer(), fc.integer({ min: LONG_MIN, max: LONG_MAX }));
    case 'double':
      return fc.double();
    case 'string':
      return fc.oneof(
        fc.string({ unit: 'grapheme' }),
        fc.string({ unit: 'grapheme', minLength: 60, maxLength: 90 }),
      );
    case 'bytes':
      return fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
    default:
      throw new Error(`no arbitrary for ${typeName}`);
  }
}

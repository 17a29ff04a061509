import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  entityKey,
  featureField,
  readEventMs,
  readValue,
} from '../../../../src/adapters/redis/feast-layout.ts';
import { feastValue } from '../../../conformance/feast-writer.ts';

interface Golden {
  feast: string;
  keys: { joinKey: string; id: { int64?: string; string?: string }; project: string; bytes: string }[];
  fields: { view: string; feature: string; bytes: string }[];
  values: { of: string; bytes: string; read: number[] | null | 'no-number' }[];
  timestamps: { bytes: string; ms: number }[];
}

/** Made by Feast's own code: feast_golden.py. */
const golden: Golden = JSON.parse(readFileSync(join(import.meta.dirname, 'feast-golden.json'), 'utf8'));

describe("Feast's own bytes", () => {
  it.each(golden.keys)('key of $id in $joinKey', ({ joinKey, id, project, bytes }) => {
    const named = id.int64 === undefined ? (id.string ?? '') : BigInt(id.int64);
    expect(entityKey(joinKey, named, project).toString('hex')).toBe(bytes);
  });

  it.each(golden.fields)('field of $view:$feature', ({ view, feature, bytes }) => {
    expect(featureField(view, feature).toString('hex')).toBe(bytes);
  });

  it.each(golden.values)('value: $of', ({ bytes, read }) => {
    expect(readValue(Buffer.from(bytes, 'hex'))).toEqual(read);
  });

  it.each(golden.timestamps)('time $ms', ({ bytes, ms }) => {
    expect(readEventMs(Buffer.from(bytes, 'hex'))).toBe(ms);
  });
});

describe('other bytes', () => {
  it.each([
    ['a list whose elements are not packed', '8201 0a 0d 0000003f 0d 0000c0bf', [0.5, -1.5]],
    ['two members, of which the last one holds', '2005 3801', [1]],
    ['a number, and then a null', '2005 980100', null],
    ['a number under the type of another', '1d 80053801', 'no-number'],
    ['a list with another field in it', '8201 02 1001', 'no-number'],
    ['a list that ends within an element', '8201 05 0a 03 000000', 'no-number'],
    ['a list that is longer than what holds it', '8201 7f 0a', 'no-number'],
    ['a tag without a value', '20', 'no-number'],
    ['an int64 that is out of bounds for a varint', `20${'ff'.repeat(11)}`, 'no-number'],
  ])('%s', (_what, hex, read) => {
    expect(readValue(Buffer.from(hex.replaceAll(' ', ''), 'hex'))).toEqual(read);
  });

  it('are never thrown over, whatever they are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const value = readValue(bytes);
        expect(value === null || value === 'no-number' || value.every((one) => typeof one === 'number')).toBe(
          true,
        );
        readEventMs(bytes);
      }),
    );
  });

  it('that are longer than any value are not read', () => {
    const long = feastValue(Array.from({ length: 10_000 }, (_, k) => k));
    expect(readValue(long)).toBe('no-number');
    expect(readValue(feastValue([1, 2, 3]))).toEqual([1, 2, 3]);
  });
});

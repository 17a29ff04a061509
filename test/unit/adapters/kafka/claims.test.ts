import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeClaims, encodeClaims, NO_CLAIMS } from '../../../../src/adapters/kafka/claims.ts';

describe('claims', () => {
  it('come back as they were encoded', () => {
    const owned = fc.array(fc.record({ topic: fc.string(), partition: fc.nat() }), { maxLength: 20 });
    fc.assert(
      fc.property(
        fc.integer(),
        owned,
        fc.option(fc.array(fc.nat()), { nil: undefined }),
        (generation, partitions, slots) => {
          const claims = { generation, owned: partitions, ...(slots === undefined ? {} : { slots }) };
          const decoded = decodeClaims(encodeClaims(claims));
          const sorted = (list: readonly { topic: string; partition: number }[]) =>
            list.map((each) => JSON.stringify(each)).sort();
          expect(decoded.generation).toBe(generation);
          expect(sorted(decoded.owned)).toEqual(sorted(partitions));
          expect(decoded.slots).toEqual(slots);
        },
      ),
    );
  });

  it.each([
    '',
    'null',
    '[]',
    '{}',
    '{"generation":1}',
    '{"generation":"x","owned":{}}',
    '{',
    '{"generation":1,"owned":7}',
    '\u0000\u0001',
  ])('are none where the bytes are not ours: %j', (text) =>
    expect(decodeClaims(Buffer.from(text))).toEqual(NO_CLAIMS),
  );

  it('leave out what is not a partition', () => {
    const claims = decodeClaims(
      Buffer.from('{"generation":1,"owned":{"t":[1,-1,1.5,"2",null],"u":7},"slots":[0,"x"]}'),
    );
    expect(claims).toEqual({ generation: 1, owned: [{ topic: 't', partition: 1 }], slots: [0] });
  });

  it('survive any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        decodeClaims(bytes);
      }),
    );
  });
});

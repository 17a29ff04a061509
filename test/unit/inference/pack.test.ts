import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bytesOfRows } from '../../../src/inference/candidate-rows.ts';
import type { CheckedItem } from '../../../src/inference/check-item.ts';
import type { SlabTensor } from '../../../src/inference/graph-call.ts';
import type { InputLayout, SentInput } from '../../../src/inference/input-layout.ts';
import { feedsOf, packBatch, planBatch, unpackHeads } from '../../../src/inference/pack.ts';

const HEADS = [
  { name: 'click', probability: true, meaning: '' },
  { name: 'conversion', probability: true, meaning: '' },
];

const inputArbitrary = (rows: SentInput['rows'], name: string): fc.Arbitrary<SentInput> =>
  fc
    .record({ datatype: fc.constantFrom('FP32', 'INT64'), width: fc.integer({ min: 1, max: 5 }) })
    .map(({ datatype, width }) => ({
      name,
      datatype,
      rowShape: [width],
      rowBytes: width * (datatype === 'FP32' ? 4 : 8),
      rows,
      required: true,
      table: undefined,
    }));

const layoutArbitrary: fc.Arbitrary<InputLayout> = fc
  .record({
    ones: fc.array(inputArbitrary('one', 'one'), { maxLength: 2 }),
    sequences: fc.array(inputArbitrary('sequence', 'sequence'), { maxLength: 2 }),
    candidate: fc.array(inputArbitrary('candidate', 'candidate'), { minLength: 1, maxLength: 2 }),
  })
  .map(({ ones, sequences, candidate }) => ({
    request: [...ones, ...sequences].map((input, i) => ({ ...input, name: `${input.name}${i}` })),
    candidate: candidate.map((input, i) => ({ ...input, name: `${input.name}${i}` })),
    requestNames: [],
    candidateNames: [],
    lengths: sequences.map((_, i) => ({ name: `length${i}`, of: ones.length + i })),
    requestIndex: 'request_index',
    tiles: undefined,
    limits: { candidatesMax: 100, sequenceLengthMax: 100, tensorBytesMax: 1e6 },
  }));

const itemArbitrary = (layout: InputLayout): fc.Arbitrary<CheckedItem> => {
  const rowsOf = (input: SentInput): fc.Arbitrary<number> =>
    input.rows === 'one' ? fc.constant(1) : fc.nat({ max: 6 });
  return fc
    .record({
      requestRows: fc.tuple(...layout.request.map(rowsOf)),
      count: fc.nat({ max: 9 }),
      seed: fc.integer({ min: 1, max: 255 }),
    })
    .map(({ requestRows, count, seed }) => {
      const contents = (bytes: number, salt: number): Uint8Array =>
        Uint8Array.from({ length: bytes }, (_, i) => 1 + ((seed * 7 + salt * 31 + i) % 255));
      return {
        request: layout.request.map((input, i) => contents(input.rowBytes * (requestRows[i] ?? 0), i)),
        requestRows,
        lengths: layout.lengths.map(({ of }) => requestRows[of] ?? 0),
        candidate: layout.candidate.map((input, i) => contents(input.rowBytes * count, 100 + i)),
        count,
      };
    });
};

const batchArbitrary = layoutArbitrary.chain((layout) =>
  fc.record({
    layout: fc.constant(layout),
    items: fc.array(itemArbitrary(layout), { minLength: 1, maxLength: 6 }),
  }),
);

function bytesOf(tensor: SlabTensor): number {
  return tensor.dims.reduce((product, size) => product * size, tensor.datatype === 'FP32' ? 4 : 8);
}

function longs(slab: ArrayBuffer, { offset, dims }: SlabTensor): number[] {
  return [...new BigInt64Array(slab, offset, dims[0] ?? 0)].map(Number);
}

/** A slab full of another batch's leftovers. */
function dirtySlab(bytes: number): ArrayBuffer {
  const slab = new ArrayBuffer(bytes);
  new Uint8Array(slab).fill(0xee);
  return slab;
}

describe('packing', () => {
  test('puts every row where its request and candidate are, pads with zeros, and counts', () => {
    fc.assert(
      fc.property(batchArbitrary, ({ layout, items }) => {
        const plan = planBatch(layout, HEADS, items);
        const slab = dirtySlab(plan.bytes);
        packBatch(layout, items, plan, slab);

        layout.request.forEach((input, position) => {
          const tensor = plan.request[position];
          if (tensor === undefined) throw new Error('a planned tensor is missing');
          const longest =
            input.rows === 'one' ? 1 : Math.max(...items.map((item) => item.requestRows[position] ?? 0));
          const axes = input.rows === 'one' ? [] : [longest];
          expect(tensor.dims).toEqual([items.length, ...axes, ...input.rowShape]);
          items.forEach((item, row) => {
            const stride = longest * input.rowBytes;
            const packed = new Uint8Array(slab, tensor.offset + row * stride, stride);
            const expected = new Uint8Array(stride);
            expected.set(item.request[position] ?? []);
            expect(packed).toEqual(expected);
          });
        });
        layout.candidate.forEach((input, position) => {
          const tensor = plan.candidate[position];
          if (tensor === undefined) throw new Error('a planned tensor is missing');
          expect(tensor.dims).toEqual([plan.candidates, ...input.rowShape]);
          const expected = Buffer.concat(
            items.map((item) => bytesOfRows(item.candidate[position] ?? new Uint8Array(0), input)),
          );
          expect(Buffer.from(slab, tensor.offset, bytesOf(tensor))).toEqual(expected);
        });
        plan.lengths.forEach((tensor, position) => {
          expect(longs(slab, tensor)).toEqual(items.map((item) => item.lengths[position]));
        });
        expect(longs(slab, plan.requestIndex)).toEqual(
          items.flatMap(({ count }, row) => Array(count).fill(row)),
        );
      }),
    );
  });

  test('gives each tensor aligned bytes of its own', () => {
    fc.assert(
      fc.property(batchArbitrary, ({ layout, items }) => {
        const plan = planBatch(layout, HEADS, items);
        let end = 0;
        for (const tensor of [...feedsOf(plan), ...plan.outputs].sort(
          (a, b) => a.offset - b.offset || bytesOf(a) - bytesOf(b),
        )) {
          expect(tensor.offset % 64).toBe(0);
          expect(tensor.offset).toBeGreaterThanOrEqual(end);
          end = tensor.offset + bytesOf(tensor);
        }
        expect(plan.bytes).toBeGreaterThanOrEqual(end);
      }),
    );
  });

  test('gives each request its own candidates back, in order, as copies', () => {
    fc.assert(
      fc.property(batchArbitrary, ({ layout, items }) => {
        const plan = planBatch(layout, HEADS, items);
        const slab = new ArrayBuffer(plan.bytes);
        plan.outputs.forEach(({ offset }, head) => {
          new Float32Array(slab, offset, plan.candidates).forEach((_, i, all) => {
            all[i] = head * 1000 + i;
          });
        });
        const heads = unpackHeads(items, plan, slab);
        new Uint8Array(slab).fill(0xee);
        let first = 0;
        items.forEach(({ count }, item) => {
          expect(heads[item]?.map((values) => [...values])).toEqual(
            HEADS.map((_, head) => Array.from({ length: count }, (__, i) => head * 1000 + first + i)),
          );
          first += count;
        });
      }),
    );
  });
});

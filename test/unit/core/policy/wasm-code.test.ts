import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WasmCode } from '../../../../src/core/policy/wasm-code.ts';

declare const WebAssembly: {
  Memory: new (pages: { initial: number }) => { readonly buffer: ArrayBuffer };
  Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  Instance: new (module: object, imports: object) => { readonly exports: { run(): number } };
};

const PLACES = 8_192;
const memory = new WebAssembly.Memory({ initial: 1 });
const doubles = new Float64Array(memory.buffer);

function run(code: WasmCode, ask: (place: number) => number = () => Number.NaN): number {
  const module = new WebAssembly.Module(code.module());
  return new WebAssembly.Instance(module, { host: { memory, ask } }).exports.run();
}

/** 1 where what `value` leaves is the same number, else 0. */
function isEqual(value: (code: WasmCode) => void, to: number, ask?: (place: number) => number): number {
  const code = new WasmCode();
  value(code);
  code.double(to);
  code.plain('f64Eq');
  return run(code, ask);
}

describe('WasmCode', () => {
  it('answers any integer from 0 that has 31 bits', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 31 - 1 }), (value) => {
        const code = new WasmCode();
        code.integer(value);
        expect(run(code)).toBe(value);
      }),
      { examples: [0, 63, 64, 127, 128, 8_191, 8_192, 2 ** 31 - 1].map((value): [number] => [value]) },
    );
  });

  it('holds any double, and reads any of the page', () => {
    fc.assert(
      fc.property(
        fc.double({ noNaN: true }),
        fc.integer({ min: 0, max: PLACES - 1 }),
        fc.integer({ min: 0, max: 10_000 }),
        (value, place, asked) => {
          doubles[place] = value;
          expect(isEqual((code) => code.load(place), value)).toBe(1);
          doubles[place] = Number.NaN;
          expect(isEqual((code) => code.load(place), value)).toBe(0);
          const ask = (of: number): number => (of === asked ? value : Number.NaN);
          expect(isEqual((code) => code.callImported(asked), value, ask)).toBe(1);
        },
      ),
    );
  });

  it.each([
    [[1, 1], 1],
    [[1, 0], 2],
    [[0, 1], 3],
  ])('branches out of as many blocks as it is told: %j', (conditions, expected) => {
    const code = new WasmCode();
    code.block();
    code.block();
    for (const [depth, condition] of conditions.entries()) {
      code.integer(condition);
      code.plain('i32Eqz');
      code.branchIf(1 - depth);
    }
    code.integer(1);
    code.plain('return', 'end');
    code.integer(2);
    code.plain('return', 'end');
    code.integer(3);
    expect(run(code)).toBe(expected);
  });

  it.each([
    [7, 7, 1],
    [8, 8, 0],
  ])('keeps %d and gives it again', (first, again, expected) => {
    const code = new WasmCode();
    code.double(first);
    code.keep();
    code.double(7);
    code.plain('f64Eq');
    code.kept();
    code.double(again);
    code.plain('f64Eq', 'i32And');
    expect(run(code)).toBe(expected);
  });
});

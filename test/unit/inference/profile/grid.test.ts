import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gridOf, largestFitting, shapesOf } from '../../../../src/inference/profile/grid.ts';
import { toyVersion } from './toy-version.fixture.ts';

const LIMITS = { candidatesMax: 2_048, sequenceLengthMax: 64, tensorBytesMax: 1 << 20 };

describe('the shapes that are measured', () => {
  it('are candidates by rows, and others than those for the held-out ones', async () => {
    const { items } = await toyVersion();
    const { fit, heldOut } = gridOf(LIMITS, items);
    expect(fit).toEqual({ candidates: [1, 4, 16, 64, 128, 256, 512, 1_024], rows: [0, 1, 8, 32, 64] });
    expect(heldOut).toEqual({ candidates: [2, 8, 32, 96, 192, 384, 768], rows: [4, 16, 48] });
    expect(shapesOf({ candidates: [1, 2], rows: [0, 4] })).toEqual([
      { candidates: 1, rows: 0 },
      { candidates: 1, rows: 4 },
      { candidates: 2, rows: 0 },
      { candidates: 2, rows: 4 },
    ]);
  });

  it('have rows where a sequence is needed', async () => {
    const { items } = await toyVersion(({ config }) => {
      for (const input of config.inputs) Reflect.deleteProperty(input, 'optional');
    });
    expect(gridOf(LIMITS, items).fit.rows).toEqual([1, 8, 32, 64]);
  });

  it('are all within the limits of the version, and some for any', async () => {
    const { items } = await toyVersion();
    const least = items.bytes({ candidates: 1, rows: 1 });
    const limits = fc.record({
      candidatesMax: fc.integer({ min: 1, max: 3_000 }),
      sequenceLengthMax: fc.integer({ min: 1, max: 100 }),
      tensorBytesMax: fc.integer({ min: least + 8 * 100, max: 40_000 }),
    });
    fc.assert(
      fc.property(limits, (drawn) => {
        const { fit, heldOut } = gridOf(drawn, items);
        const shapes = [...shapesOf(fit), ...shapesOf(heldOut)];
        expect(shapesOf(fit).length).toBeGreaterThan(0);
        expect(shapesOf(heldOut).length).toBeGreaterThan(0);
        for (const shape of shapes) {
          expect(shape.candidates).toBeLessThanOrEqual(drawn.candidatesMax);
          expect(shape.candidates).toBeGreaterThanOrEqual(1);
          expect(shape.rows).toBeLessThanOrEqual(drawn.sequenceLengthMax);
          expect(items.bytes(shape)).toBeLessThanOrEqual(drawn.tensorBytesMax);
        }
      }),
    );
  });

  it('have as many candidates as fit, and no more', async () => {
    const { items } = await toyVersion();
    const limits = { ...LIMITS, tensorBytesMax: 500 };
    const most = largestFitting(limits, items, 4);
    expect(items.bytes({ candidates: most, rows: 4 })).toBeLessThanOrEqual(500);
    expect(items.bytes({ candidates: most + 1, rows: 4 })).toBeGreaterThan(500);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createGenerator, type Generator } from '../../../../src/core/random/generator.ts';
import {
  addWindow,
  eValue,
  HARM,
  logEValue,
  logMeanExp,
  type RatioTest,
  type RatioWindow,
  SAFE,
  startRatioTest,
  type TestFamily,
} from '../../../../src/core/rollout/sequential-test.ts';

const start = (family: TestFamily) => startRatioTest(family.null, family.alternatives);
const fold = (family: TestFamily, windows: readonly RatioWindow[]): RatioTest =>
  windows.reduce(addWindow, start(family));

const window = fc.record({
  exposure: fc.double({ min: 0.01, max: 0.99, noNaN: true }),
  canaryEvents: fc.nat(200),
  controlEvents: fc.nat(2_000),
});
const windows = fc.array(window, { maxLength: 20 });
const families = fc.constantFrom(HARM, SAFE);

describe('the ratio of event rates', () => {
  it('starts without evidence', () => {
    expect(eValue(start(HARM))).toBe(1);
  });

  it('is the formula, for one window', () => {
    const w = 0.05;
    const theta = (ratio: number) => (w * ratio) / (w * ratio + 1 - w);
    const terms = HARM.alternatives.map(
      (ratio) => (theta(ratio) / theta(HARM.null)) ** 3 * ((1 - theta(ratio)) / (1 - theta(HARM.null))) ** 7,
    );
    const expected = terms.reduce((sum, term) => sum + term, 0) / terms.length;
    expect(eValue(fold(HARM, [{ exposure: w, canaryEvents: 3, controlEvents: 7 }]))).toBeCloseTo(
      expected,
      10,
    );
  });

  it('four canary errors against none are enough to be sure of one metric of six', () => {
    const of = (canaryEvents: number) =>
      eValue(fold(HARM, [{ exposure: 0.05, canaryEvents, controlEvents: 0 }]));
    expect(of(3)).toBeLessThan(600);
    expect(of(4)).toBeGreaterThan(600);
  });

  it('the order of windows does not matter', () => {
    fc.assert(
      fc.property(families, windows, (family, seen) => {
        const there = logEValue(fold(family, seen));
        const back = logEValue(fold(family, seen.toReversed()));
        expect(back).toBeCloseTo(there, 6);
      }),
    );
  });

  it('windows of equal exposure add up to one', () => {
    fc.assert(
      fc.property(
        families,
        windows,
        fc.double({ min: 0.01, max: 0.99, noNaN: true }),
        (family, seen, exposure) => {
          const one = {
            exposure,
            canaryEvents: seen.reduce((sum, each) => sum + each.canaryEvents, 0),
            controlEvents: seen.reduce((sum, each) => sum + each.controlEvents, 0),
          };
          const apart = fold(
            family,
            seen.map((each) => ({ ...each, exposure })),
          );
          expect(logEValue(apart)).toBeCloseTo(logEValue(fold(family, [one])), 6);
        },
      ),
    );
  });

  it('one more canary event speaks for harm and against safety; one more control event does the opposite', () => {
    fc.assert(
      fc.property(windows, window, (before, last) => {
        const worse = [...before, { ...last, canaryEvents: last.canaryEvents + 1 }];
        const better = [...before, { ...last, controlEvents: last.controlEvents + 1 }];
        for (const [family, sign] of [
          [HARM, 1],
          [SAFE, -1],
        ] as const) {
          const e = logEValue(fold(family, [...before, last])) * sign;
          expect(logEValue(fold(family, worse)) * sign).toBeGreaterThan(e);
          expect(logEValue(fold(family, better)) * sign).toBeLessThan(e);
        }
      }),
    );
  });

  it('stays finite and JSON however much evidence there is', () => {
    const day: RatioWindow = { exposure: 0.5, canaryEvents: 4e9, controlEvents: 1_000 };
    for (const family of [HARM, SAFE]) {
      const test = fold(family, [day, day]);
      expect(test.logE.every(Number.isFinite)).toBe(true);
      expect(JSON.parse(JSON.stringify(test))).toEqual(test);
    }
  });

  it.each([0, 1])('exposure %d says nothing at all', (exposure) => {
    const events =
      exposure === 0
        ? { canaryEvents: 0, controlEvents: 1_000_003 }
        : { canaryEvents: 1_000_003, controlEvents: 0 };
    expect(eValue(fold(HARM, [{ exposure, ...events }]))).toBe(1);
  });

  it.each<[string, RatioWindow]>([
    ['canary events without a canary', { exposure: 0, canaryEvents: 1, controlEvents: 0 }],
    ['control events without a control', { exposure: 1, canaryEvents: 0, controlEvents: 1 }],
    ['an exposure above 1', { exposure: 1.1, canaryEvents: 0, controlEvents: 0 }],
    ['no number as exposure', { exposure: Number.NaN, canaryEvents: 0, controlEvents: 0 }],
    ['no number as count', { exposure: 0.5, canaryEvents: Number.NaN, controlEvents: 0 }],
    ['a negative count', { exposure: 0.5, canaryEvents: 0, controlEvents: -1 }],
    ['half an event', { exposure: 0.5, canaryEvents: 0.5, controlEvents: 0 }],
  ])('refuses %s', (_, contradiction) => {
    expect(() => addWindow(start(HARM), contradiction)).toThrow(
      expect.objectContaining({ code: 'MALFORMED' }),
    );
  });
});

describe('under the null', () => {
  // The boundary ratio is the worst case; canary and control draw independently, exposure changes from window to window.
  it.each([
    ['harm', HARM, 0.01],
    ['harm, common events', HARM, 0.4],
    ['safe', SAFE, 0.01],
    ['safe, common events', SAFE, 0.4],
  ] as const)(
    '%s: E has mean 1 at most, and reaches its threshold as rarely as it promises',
    (_, family, rate) => {
      const random = createGenerator(7, `null/${family.null}/${rate}`);
      const paths = 4_000;
      let sum = 0;
      let reached = 0;
      for (let path = 0; path < paths; path++) {
        let test = start(family);
        let largest = 0;
        for (let look = 0; look < 12; look++) {
          test = addWindow(test, draw(random, rate, family.null));
          largest = Math.max(largest, eValue(test));
          if (look === 2) sum += eValue(test);
        }
        if (largest >= family.threshold) reached += 1;
      }
      expect(sum / paths).toBeLessThan(1.25);
      expect(reached / paths).toBeLessThan(1.25 / family.threshold);
    },
  );
});

function draw(random: Generator, rate: number, ratio: number): RatioWindow {
  const canary = 10 + random.below(10);
  const control = 40 + random.below(20);
  const hits = (requests: number, chance: number) => {
    let events = 0;
    for (let i = 0; i < requests; i++) if (random.next() < chance) events += 1;
    return events;
  };
  return {
    exposure: canary / (canary + control),
    canaryEvents: hits(canary, rate * ratio),
    controlEvents: hits(control, rate),
  };
}

it('the mean of exponentials survives exponents that do not fit', () => {
  expect(logMeanExp([1_000, 1_000])).toBe(1_000);
  expect(logMeanExp([0, -1e9])).toBeCloseTo(-Math.log(2), 12);
  expect(logMeanExp([Number.NEGATIVE_INFINITY])).toBe(Number.NEGATIVE_INFINITY);
});

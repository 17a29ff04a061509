import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type MeasuredTarget,
  measuredTargets,
  stretches,
  WORTH_A_BRANCH,
} from '../../../../src/core/profile/stretches.ts';
import { profile, target, version } from './profile.fixture.ts';

function linear(accelerator: string, base: number, perCandidate: number): MeasuredTarget {
  const costMs = (candidates: number): number => base + perCandidate * candidates;
  return { accelerator, kernel: 'dense', memory: 'host', costMs };
}

const shown = (found: ReturnType<typeof stretches>) =>
  found.map(({ upTo, target: { accelerator } }) => `${accelerator} ${upTo ?? 'rest'}`);

/** The target of a number of candidates, one number after another. */
function fastestOfEach(targets: readonly MeasuredTarget[], candidatesMax: number): string[] {
  const names: string[] = [];
  let current: MeasuredTarget | undefined;
  for (let candidates = 1; candidates <= candidatesMax; candidates += 1) {
    const cost = (each: MeasuredTarget): number => each.costMs(candidates);
    const least = Math.min(...targets.map(cost));
    if (current === undefined || least < (1 - WORTH_A_BRANCH) * cost(current))
      current = targets.find((each) => cost(each) === least);
    names.push(current?.accelerator ?? '');
  }
  return names;
}

describe('the fastest target by number of candidates', () => {
  it('changes where another is faster by enough to be worth a branch', () => {
    const found = stretches([linear('cpu', 0.1, 0.01), linear('gpu', 1, 0.001)], 1_000);
    // 1 + 0.001·N < 0.95·(0.1 + 0.01·N) from N = 107 on.
    expect(shown(found)).toEqual(['cpu 106', 'gpu rest']);
  });

  it('is one where the others are faster by less', () => {
    expect(shown(stretches([linear('cpu', 1, 0.01), linear('gpu', 0.96, 0.01)], 1_000))).toEqual([
      'gpu rest',
    ]);
    expect(shown(stretches([linear('cpu', 1, 0.01), linear('gpu', 1.01, 0.0097)], 1_000))).toEqual([
      'cpu rest',
    ]);
  });

  it('is none where there is none', () => {
    expect(stretches([], 10)).toEqual([]);
  });

  it('is, for every number of candidates, what trying each of them finds', () => {
    const cost = fc.double({ min: 1e-4, max: 2, noNaN: true });
    const drawn = fc.array(fc.tuple(cost, cost), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(drawn, fc.integer({ min: 1, max: 300 }), (costs, candidatesMax) => {
        const targets = costs.map(([base, perCandidate], n) => linear(`a${n}`, base, perCandidate));
        const found = stretches(targets, candidatesMax);
        expect(found.at(-1)?.upTo).toBeUndefined();
        const byNumber = Array.from({ length: candidatesMax }, (_, n) => {
          const stretch = found.find(({ upTo }) => upTo === undefined || n + 1 <= upTo);
          return stretch?.target.accelerator;
        });
        expect(byNumber).toEqual(fastestOfEach(targets, candidatesMax));
      }),
    );
  });
});

describe('targets that were measured', () => {
  const dense = (base: number) => target('dense', 'host', base, 0);

  it('cost the geometric mean of the versions that all profiles have', () => {
    const cpu = profile('cpu', [
      version('a', [dense(1)]),
      version('b', [dense(4)]),
      version('c', [dense(100)]),
    ]);
    const gpu = profile('gpu', [version('b', [dense(9)]), version('a', [dense(1)])]);
    const found = measuredTargets([cpu, gpu]);
    expect(found.map(({ accelerator }) => accelerator)).toEqual(['cpu', 'gpu']);
    expect(found[0]?.costMs(10)).toBeCloseTo(2);
    expect(found[1]?.costMs(10)).toBeCloseTo(3);
  });

  it('count requests with sequences of the usual length', () => {
    const byRows = { ...dense(1), features: ['1', 'N*T'], coefficients: [1, 0.5] };
    const [found] = measuredTargets([profile('cpu', [version('a', [byRows], { typicalRows: 4 })])]);
    expect(found?.costMs(10)).toBeCloseTo(21);
  });

  it('leave out the sparse kernel, and what not every version can be run by', () => {
    const sparseToo = [dense(1), target('sparse', 'host', 0.1, 0), target('attention', 'host', 0.1, 0)];
    const found = measuredTargets([profile('cpu', [version('a', sparseToo), version('b', [dense(1)])])]);
    expect(found.map(({ kernel }) => kernel)).toEqual(['dense']);
    const alone = measuredTargets([profile('cpu', [version('a', sparseToo)])]);
    expect(alone.map(({ kernel }) => kernel)).toEqual(['dense', 'attention']);
  });

  it('are none where no version is in all of the profiles', () => {
    expect(
      measuredTargets([
        profile('cpu', [version('a', [dense(1)])]),
        profile('gpu', [version('b', [dense(1)])]),
      ]),
    ).toEqual([]);
    expect(measuredTargets([])).toEqual([]);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BatchShape,
  CostMomentSum,
  type CostMoments,
  fitMoments,
  MOMENT_FEATURES,
  MOMENT_NAMES,
  momentsError,
  tellsCandidatesApart,
} from '../../../../src/core/signals/cost-moments.ts';
import { fitCost } from '../../../../src/core/signals/fit-cost.ts';

interface Request {
  readonly candidates: number;
  readonly rows: number;
}
interface Batch {
  readonly requests: readonly Request[];
  readonly ms: number;
}

function shapeOf(requests: readonly Request[]): BatchShape {
  const sum = (of: (request: Request) => number): number =>
    requests.reduce((total, request) => total + of(request), 0);
  return {
    requests: requests.length,
    candidates: sum(({ candidates }) => candidates),
    rows: sum(({ rows }) => rows),
    candidateRows: sum(({ candidates, rows }) => candidates * rows),
  };
}

function momentsOf(batches: readonly Batch[]): CostMoments {
  const sum = new CostMomentSum();
  for (const { requests, ms } of batches) sum.add(shapeOf(requests), ms);
  return sum.take();
}

const predicted = (coefficients: readonly number[], requests: readonly Request[]): number => {
  const { requests: count, candidates, rows, candidateRows } = shapeOf(requests);
  return [count, candidates, rows, candidateRows].reduce(
    (sum, feature, n) => sum + feature * (coefficients[n] ?? 0),
    0,
  );
};

const request = fc.record({ candidates: fc.integer({ min: 1, max: 500 }), rows: fc.nat({ max: 64 }) });
const ms = fc.double({ min: 0.01, max: 100, noNaN: true });
const batchOf = (size: { minLength: number; maxLength: number }): fc.Arbitrary<Batch> =>
  fc.record({ requests: fc.array(request, size), ms });
const batches = fc.array(batchOf({ minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 40 });
const coefficients = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 4, maxLength: 4 });

describe('sums over batches that a cost model is fitted to', () => {
  it('give what a fit of the samples gives, where batches are of one request', () => {
    const alone = fc.array(batchOf({ minLength: 1, maxLength: 1 }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(alone, (drawn) => {
        const samples = drawn.flatMap(({ requests, ms: took }) =>
          requests.map((one) => ({ ...one, ms: took })),
        );
        const [fit, wanted] = [fitMoments(momentsOf(drawn)), fitCost(MOMENT_FEATURES, samples)];
        // Two that are as good may be told apart by the last digit.
        expect(momentsError(momentsOf(drawn), fit)).toBeCloseTo(momentsError(momentsOf(drawn), wanted), 6);
      }),
    );
  });

  it('find the cost of a request from batches of several', () => {
    const wanted = [0.3, 0.002, 0.001, 0.00004];
    const shapes: Request[][] = [1, 2, 3, 5, 8, 13].flatMap((size) =>
      [3, 50, 400].map((candidates) =>
        Array.from({ length: size }, (_, n) => ({
          candidates: candidates + 7 * n,
          rows: (size * n * 5) % 33,
        })),
      ),
    );
    const fit = fitMoments(
      momentsOf(shapes.map((requests) => ({ requests, ms: predicted(wanted, requests) }))),
    );
    for (const [n, value] of fit.entries()) expect(value).toBeCloseTo(wanted[n] ?? 0, 8);
  });

  it('are those of all, where those of two halves are added up', () => {
    fc.assert(
      fc.property(batches, batches, (one, other) => {
        const [a, b, both] = [momentsOf(one), momentsOf(other), momentsOf([...one, ...other])];
        for (const name of MOMENT_NAMES) {
          const sum = (a.get(name) ?? 0) + (b.get(name) ?? 0);
          expect(Math.abs(sum - (both.get(name) ?? 0))).toBeLessThanOrEqual(1e-9 * Math.abs(sum));
        }
      }),
    );
  });

  it('give the root of the mean square of the relative error of any cost model', () => {
    fc.assert(
      fc.property(batches, coefficients, (drawn, model) => {
        const squares = drawn.map(({ requests, ms: took }) => (predicted(model, requests) / took - 1) ** 2);
        const wanted = Math.sqrt(squares.reduce((sum, square) => sum + square, 0) / drawn.length);
        const error = momentsError(momentsOf(drawn), model);
        expect(Math.abs(error - wanted)).toBeLessThanOrEqual(1e-6 * Math.max(1, wanted));
      }),
    );
  });

  it('give a fit that is no worse than what made the batches, nor than nothing', () => {
    const made = fc.array(
      fc.tuple(
        fc.array(request, { minLength: 1, maxLength: 6 }),
        fc.double({ min: 0.8, max: 1.2, noNaN: true }),
      ),
      {
        minLength: 1,
        maxLength: 40,
      },
    );
    const positive = fc.array(fc.double({ min: 0.01, max: 1, noNaN: true }), { minLength: 4, maxLength: 4 });
    fc.assert(
      fc.property(made, positive, (drawn, model) => {
        const noisy = drawn.map(([requests, noise]) => ({
          requests,
          ms: noise * predicted(model, requests),
        }));
        const moments = momentsOf(noisy);
        const fit = fitMoments(moments);
        const error = momentsError(moments, fit);
        expect(error).toBeLessThanOrEqual(1);
        if (fit.every((value) => value > 0))
          expect(error).toBeLessThanOrEqual(momentsError(moments, model) + 1e-6);
      }),
    );
  });

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e-320])(
    'leave out a batch that took %f ms',
    (took) => {
      const sum = new CostMomentSum();
      sum.add(shapeOf([{ candidates: 1e6, rows: 64 }]), took);
      expect([...sum.take().values()].every((value) => value === 0)).toBe(true);
    },
  );

  it('are taken once', () => {
    const sum = new CostMomentSum();
    sum.add(shapeOf([{ candidates: 4, rows: 2 }]), 2);
    const taken = sum.take();
    expect(Object.fromEntries(taken)).toEqual({
      ...{ batches: 1, '1': 0.5, N: 2, T: 1, 'N*T': 4 },
      ...{ '1 1': 0.25, '1 N': 1, '1 T': 0.5, '1 N*T': 2 },
      ...{ 'N N': 4, 'N T': 2, 'N N*T': 8, 'T T': 1, 'T N*T': 4, 'N*T N*T': 16 },
    });
    expect([...sum.take().values()].every((value) => value === 0)).toBe(true);
  });

  it('say nothing where there was no batch', () => {
    expect(fitMoments(new Map())).toEqual([0, 0, 0, 0]);
    expect(momentsError(new Map(), [1, 1, 1, 1])).toBeNaN();
    expect(tellsCandidatesApart(new Map())).toBe(false);
  });

  it('tell a candidate from a request only where requests differ in candidates', () => {
    const of = (candidates: (n: number) => number) =>
      momentsOf(
        Array.from({ length: 40 }, (_, n) => ({
          requests: Array.from({ length: 1 + (n % 3) }, () => ({ candidates: candidates(n), rows: 0 })),
          ms: (1 + (n % 3)) * (1 + 0.01 * candidates(n)),
        })),
      );
    expect(tellsCandidatesApart(of(() => 100))).toBe(false);
    expect(tellsCandidatesApart(of((n) => 100 + (n % 5)))).toBe(false);
    expect(tellsCandidatesApart(of((n) => 50 + 20 * (n % 5)))).toBe(true);
  });
});

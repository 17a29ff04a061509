import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AcceptedRequest } from '../../../../src/core/request/check.ts';
import type { FamilyContract } from '../../../../src/core/request/family.ts';
import { CANDIDATE_VALUES_MAX, createViewReader } from '../../../../src/core/signals/view-reader.ts';
import { numbers, RANKER } from '../request/requests.ts';

const FAMILY: FamilyContract = {
  ...RANKER,
  inputs: [
    { name: 'session', side: 'request', datatype: 'FP64', shape: [-1, 3], required: false },
    { name: 'small', side: 'candidate', datatype: 'FP32', shape: [-1], required: true },
    { name: 'large', side: 'candidate', datatype: 'FP64', shape: [-1, 24], required: true },
    { name: 'code', side: 'candidate', datatype: 'INT32', shape: [-1, 2], required: false },
  ],
};

const counting = (size: number) => Array.from({ length: size }, (_, i) => i);

/** Every value is its own position, so that a sample says where it was taken. */
function accepted(requestId: string, n: number, rows: number): AcceptedRequest {
  return {
    status: 'accepted',
    requestId,
    family: FAMILY,
    version: undefined,
    candidateCount: n,
    sequenceLength: rows,
    tensorBytes: 0,
    budgetMs: 100,
    bucketKey: requestId,
    value: 0,
    context: {},
    contextDropped: 0,
    tensors: [
      numbers('session', 'FP64', [rows, 3], counting(rows * 3)),
      numbers('small', 'FP32', [n], counting(n)),
      numbers('large', 'FP64', [n, 24], counting(n * 24)),
      numbers('code', 'INT32', [n, 2], counting(n * 2)),
    ],
  };
}

describe('the view', () => {
  it('holds the request side in full and an even sample of the candidate side', () => {
    const reader = createViewReader();
    fc.assert(
      fc.property(fc.string(), fc.nat({ max: 400 }), fc.nat({ max: 50 }), (requestId, n, rows) => {
        const view = reader.read(accepted(requestId, n, rows), undefined);
        const [session] = view.requestRuns;
        expect(view.requestRuns.map(({ input }) => input.name)).toEqual(['session']);
        expect([...view.values.subarray(session?.start, session?.end)]).toEqual(counting(rows * 3));
        expect(session).toMatchObject({ tensorValues: rows * 3, rowValues: rows === 0 ? 0 : 3 });

        expect(view.candidateRuns.map(({ input }) => input.name)).toEqual(['small', 'large']);
        let taken = 0;
        for (const run of view.candidateRuns) {
          const positions = [...view.values.subarray(run.start, run.end)];
          taken += positions.length;
          expect(positions.length > 0).toBe(n > 0);
          expect(
            positions.every((position) => Number.isInteger(position) && position < run.tensorValues),
          ).toBe(true);
          const strides = new Set(positions.slice(1).map((position, i) => position - (positions[i] ?? 0)));
          expect(strides.size).toBeLessThanOrEqual(1);
        }
        expect(taken).toBeLessThanOrEqual(CANDIDATE_VALUES_MAX);
      }),
      { numRuns: 60 },
    );
  });

  it('takes every value of a candidate side that is small enough', () => {
    const view = createViewReader().read(accepted('id', 80, 0), undefined);
    expect(view.candidateRuns.map(({ start, end }) => end - start)).toEqual([80, 1920]);
  });

  it('gives each run its moments', () => {
    const view = createViewReader().read(accepted('id', 4, 1), undefined);
    expect(view.requestRuns[0]).toMatchObject({ zeros: 1, sum: 3, sumSquares: 5 });
    expect(view.candidateRuns[0]).toMatchObject({ zeros: 1, sum: 6, sumSquares: 14, rowValues: 1 });
    expect(view.candidateRuns[1]).toMatchObject({ zeros: 1, sum: (95 * 96) / 2, rowValues: 24 });
  });
});

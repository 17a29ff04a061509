import { type Compared, crossover } from '../../core/profile/crossover.ts';
import type { SparseProfile } from '../../core/profile/profile.ts';
import { timesInTurns } from '../times-in-turns.ts';
import { largestFitting } from './grid.ts';
import type { FloatCounts } from './made-item.ts';
import { computeMs, kernelsOf, type Measuring, MS_MIN, rounded, usualRows } from './measuring.ts';

const [DENSE, SPARSE] = ['dense', 'sparse'];
const BATCHES = [
  { requests: 1, candidates: 64 },
  { requests: 1, candidates: 256 },
  { requests: 16, candidates: 64 },
];
const ZERO_SHARES = [0, 0.5, 0.7, 0.8, 0.9, 0.96, 0.99];

/** Where the sparse kernel overtakes the dense one, by batch; none where the version cannot be run by both, or has no floats per candidate. */
export async function compareSparse(measuring: Measuring, measureMs: number): Promise<SparseProfile[]> {
  const { capabilities, items } = measuring;
  const kernels = kernelsOf(measuring);
  const memory = capabilities.memories[0];
  const both = kernels.includes(SPARSE) && kernels.includes(DENSE) && items.hasCandidateFloats;
  if (!both || memory === undefined) return [];
  const batches = BATCHES.filter((batch) => fits(measuring, batch.candidates));
  const profiles: SparseProfile[] = [];
  for (const batch of batches) {
    const rows = usualRows(measuring);
    const batchMs = measureMs / batches.length;
    profiles.push(await compareKernels(measuring, { ...batch, rows, memory, measureMs: batchMs }));
  }
  return profiles;
}

function fits({ version: { limits }, items }: Measuring, candidates: number): boolean {
  return candidates <= largestFitting(limits, items, limits.sequenceLengthMax);
}

interface ComparedBatch {
  readonly requests: number;
  readonly candidates: number;
  readonly rows: number;
  readonly memory: string;
  readonly measureMs: number;
}

async function compareKernels(
  measuring: Measuring,
  { requests, candidates, rows, memory, measureMs }: ComparedBatch,
): Promise<SparseProfile> {
  const batches = ZERO_SHARES.map((zeroShare) =>
    Array.from({ length: requests }, () => measuring.items.make({ candidates, rows, zeroShare })),
  );
  const calls = batches.flatMap((items) =>
    [DENSE, SPARSE].map((kernel) => () => computeMs(measuring.model, items, { kernel, memory })),
  );
  const { times } = await timesInTurns(calls, { clock: measuring.clock, measureMs });
  const compared = ZERO_SHARES.map((zeroShare, n): Compared => {
    const [dense = 0, sparse = 0] = times.slice(2 * n);
    return { zeroShare, ratio: rounded(dense / Math.max(sparse, MS_MIN)) };
  });
  const from = crossover(compared);
  const never = compared.every(({ ratio }) => ratio < 1) || from >= 1;
  const counts = batches.flat().map((item) => measuring.items.counts(item));
  return {
    ...{ memory, requests, candidates, compared },
    fasterFromZeros: never ? null : rounded(from),
    fasterBelowNonZeroShare: never ? null : rounded(nonZeroShare(counts, from)),
  };
}

/** What the signal of that name says of such requests where so many of the candidates' values are zeros. */
function nonZeroShare(counts: readonly FloatCounts[], zeroShare: number): number {
  const sum = (of: (each: FloatCounts) => number): number =>
    counts.reduce((total, each) => total + of(each), 0);
  const candidate = sum((each) => each.candidate);
  const nonZeros = sum((each) => each.requestNonZeros) + (1 - zeroShare) * candidate;
  return nonZeros / (sum((each) => each.request) + candidate);
}

import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { measureAccelerator } from '../../../../src/inference/profile/measure-accelerator.ts';
import { measureVersion } from '../../../../src/inference/profile/measure-version.ts';
import type { Measuring } from '../../../../src/inference/profile/measuring.ts';
import { readProfile } from '../../../../src/inference/profile/profile-schema.ts';
import type { Accelerator, LoadedModel, ScoreItem } from '../../../../src/ports/accelerator.ts';
import type { Clock } from '../../../../src/ports/clock.ts';
import type { ToyFiles } from '../toy-model.ts';
import { toyVersion } from './toy-version.fixture.ts';

/** ms of a batch: by requests, candidates, rows, candidates × rows, and non-zeros of the candidates' values. */
type Cost = readonly [base: number, n: number, t: number, nt: number, nonZeros: number];

const DENSE: Cost = [0.2, 0.01, 0.003, 0.0005, 0];
const CAPABILITIES = {
  ...{ backend: 'of-a-test', simulated: false, kernels: ['dense', 'sparse'], memories: ['host', 'l2'] },
  datatypes: ['FP32', 'INT64'] as const,
};
/** Wide enough for batches of 64 and 256 candidates. */
const wide = ({ config }: ToyFiles): void => {
  config.limits = { candidatesMax: 1_024, sequenceLengthMax: 64, tensorBytesMax: 1 << 20 };
};

function sizes({ requestTensors, candidateTensors, scoreLimit }: ScoreItem): Cost {
  const rows = requestTensors.find(({ name }) => name === 'history')?.shape[0] ?? 0;
  const item = candidateTensors[0]?.contents ?? Buffer.alloc(0);
  const values = new Float32Array(item.buffer, item.byteOffset, item.length / 4);
  return [1, scoreLimit, rows, scoreLimit * rows, values.filter((value) => value !== 0).length];
}

/** A model of known cost; `l2` is twice as fast. */
function machine(costs: Readonly<Record<string, Cost>>, fails: (item: ScoreItem) => boolean = () => false) {
  let nowMs = 0;
  const batches: { kernel: string; requests: number; candidates: number }[] = [];
  const model: LoadedModel = {
    ...{ family: 'toy', version: '1', variant: 'baseline', kernels: Object.keys(costs) },
    async run(items, kernel, memory) {
      const cost = costs[kernel];
      if (cost === undefined) throw new MillraceError('MODEL_FAILED', 'no such kernel', { value: kernel });
      const ms = items
        .flatMap((item) => sizes(item).map((size, n) => size * (cost[n] ?? 0)))
        .reduce((sum, each) => sum + each, 0);
      nowMs += ms;
      batches.push({ kernel, requests: items.length, candidates: items[0]?.scoreLimit ?? 0 });
      return {
        items: items.map((item) =>
          fails(item)
            ? { status: 'failed', error: new MillraceError('MODEL_FAILED', 'toy@1: no such id') }
            : { status: 'scored', scores: { heads: [], scores: new Float32Array(item.scoreLimit) } },
        ),
        computeMs: memory === 'l2' ? ms / 2 : ms,
        bytesMoved: 0,
      };
    },
    predictMs: () => 0,
    unload: async () => undefined,
  };
  const clock = { monotonicMs: () => nowMs } as Clock;
  return { model, clock, batches };
}

async function measuring(
  costs: Readonly<Record<string, Cost>>,
  change: (files: ToyFiles) => void = wide,
): Promise<Measuring & { batches: ReturnType<typeof machine>['batches'] }> {
  const { version, items } = await toyVersion(change);
  return { ...machine(costs), version, items, capabilities: CAPABILITIES, measureMs: 1 };
}

describe('what a version takes', () => {
  it('is fitted to what was measured, by kernel and memory domain', async () => {
    const { targets } = await measureVersion(await measuring({ dense: DENSE }));
    expect(targets.map(({ kernel, memory }) => `${kernel}/${memory}`)).toEqual(['dense/host', 'dense/l2']);
    for (const [n, target] of targets.entries()) {
      expect(target.features).toEqual(['1', 'N', 'T', 'N*T']);
      for (const [of, coefficient] of target.coefficients.entries())
        expect(coefficient * (n + 1)).toBeCloseTo(DENSE[of] ?? 0, 4);
      expect(target.p95RelativeError).toBeLessThan(1e-3);
      expect(target.shapes).toHaveLength(8 * 5);
      expect(target.heldOut).toHaveLength(7 * 3);
    }
  });

  it('is told for batches, of requests with the usual rows', async () => {
    const { batches } = await measureVersion(await measuring({ dense: DENSE }));
    const [base, n, t, nt] = DENSE;
    const rows = 4;
    expect(batches.map(({ requests, candidates }) => [requests, candidates])).toEqual([
      [1, 32],
      [4, 32],
      [16, 32],
      [64, 32],
    ]);
    for (const { requests, ms } of batches)
      expect(ms / requests).toBeCloseTo(base + 32 * n + rows * t + 32 * rows * nt, 3);
  });

  it('is told for batches of fewer candidates where no more fit', async () => {
    const subject = await measuring({ dense: DENSE }, ({ config }) => {
      config.limits.tensorBytesMax = 200;
    });
    const { batches } = await measureVersion(subject);
    expect(batches[0]?.candidates).toBeLessThan(32);
    expect(subject.items.bytes({ candidates: batches[0]?.candidates ?? 0, rows: 4 })).toBeLessThanOrEqual(
      200,
    );
  });

  it('finds where the sparse kernel overtakes, as the signal has it', async () => {
    // 64 candidates of 3 values: dense 0.2 + 64·0.01 = 0.84 ms, sparse 0.2 + 0.01·(non-zeros of 192) ms: equal at a third of zeros.
    const costs = { dense: [0.2, 0.01, 0, 0, 0], sparse: [0.2, 0, 0, 0, 0.005] } as const;
    const { sparse } = await measureVersion(await measuring(costs));
    expect(sparse.map(({ requests, candidates }) => [requests, candidates])).toEqual([
      [1, 64],
      [1, 256],
      [16, 64],
    ]);
    for (const { memory, compared, fasterFromZeros, fasterBelowNonZeroShare, candidates } of sparse) {
      expect(memory).toBe('host');
      expect(compared[0]?.ratio).toBeLessThan(1);
      expect(compared.at(-1)?.ratio).toBeGreaterThan(1);
      expect(Math.abs((fasterFromZeros ?? 0) - 1 / 3)).toBeLessThan(0.03);
      // The request's 3 + 4·2 values count, too; some of them may be zeros.
      const [values, ofRequest] = [3 * candidates, 11];
      const most = (ofRequest + (1 - (fasterFromZeros ?? 0)) * values) / (ofRequest + values);
      expect(fasterBelowNonZeroShare).toBeLessThanOrEqual(most + 1e-3);
      expect(fasterBelowNonZeroShare).toBeGreaterThan(most - 0.08);
    }
  });

  it('says never where the sparse kernel is slower at every share', async () => {
    const costs = { dense: [0.2, 0.01, 0, 0, 0], sparse: [2, 1, 0, 0, 0] } as const;
    const { sparse } = await measureVersion(await measuring(costs));
    for (const one of sparse)
      expect(one).toMatchObject({ fasterFromZeros: null, fasterBelowNonZeroShare: null });
  });

  it('compares no kernels where there is one, nor batches that the version does not take', async () => {
    expect((await measureVersion(await measuring({ dense: DENSE }))).sparse).toEqual([]);
    const small = await measuring({ dense: DENSE, sparse: DENSE }, ({ config }) => {
      config.limits = { candidatesMax: 100, sequenceLengthMax: 8, tensorBytesMax: 1 << 20 };
    });
    const { sparse } = await measureVersion(small);
    expect(sparse.map(({ requests, candidates }) => [requests, candidates])).toEqual([
      [1, 64],
      [16, 64],
    ]);
  });
});

describe('what an accelerator takes', () => {
  async function measure(fails: (item: ScoreItem) => boolean, refuses: readonly string[] = []) {
    const { repository, version } = await toyVersion(wide);
    const { model, clock } = machine({ dense: DENSE }, fails);
    const unloaded: string[] = [];
    const accelerator: Accelerator = {
      capabilities: { ...CAPABILITIES, datatypes: [...CAPABILITIES.datatypes] },
      failed: new Promise(() => undefined),
      async load(family, number) {
        if (refuses.includes(number)) throw new MillraceError('INVALID_MODEL', 'cannot be loaded');
        return { ...model, unload: async () => void unloaded.push(`${family}@${number}`) };
      },
      close: async () => undefined,
    };
    const versions = ['1', '2', '3'].map((number) => ({ ...version, version: number }));
    const told: string[] = [];
    const measured = await measureAccelerator({
      ...{ name: 'cpu', accelerator, clock, random: seededRandom(1), seed: 1, measureMs: 1, versions },
      repository: { ...repository, readGolden: () => repository.readGolden(version) },
      onVersion: ({ version: number }) => told.push(number),
    });
    return { measured, unloaded, told };
  }

  it('is a profile that can be read again', async () => {
    const { measured, unloaded, told } = await measure(() => false);
    expect(measured.failed).toEqual([]);
    expect(told).toEqual(['1', '2', '3']);
    expect(unloaded).toEqual(['toy@1', 'toy@2', 'toy@3']);
    expect(measured).toMatchObject({ accelerator: 'cpu', backend: 'of-a-test', simulated: false, seed: 1 });
    expect(readProfile('cpu.json', JSON.stringify(measured, null, 2))).toEqual(measured);
  });

  it('lists a version that cannot be loaded, and measures the others', async () => {
    const { measured, unloaded } = await measure(() => false, ['2']);
    expect(measured.versions.map(({ version }) => version)).toEqual(['1', '3']);
    expect(measured.failed).toEqual([{ family: 'toy', version: '2', reason: 'cannot be loaded' }]);
    expect(unloaded).toEqual(['toy@1', 'toy@3']);
  });

  it('takes no time of a request that failed', async () => {
    const { measured, unloaded } = await measure(({ scoreLimit }) => scoreLimit === 768);
    expect(measured.versions).toEqual([]);
    expect(measured.failed.map(({ reason }) => reason)).toEqual(Array(3).fill('toy@1: no such id'));
    expect(unloaded).toHaveLength(3);
  });
});

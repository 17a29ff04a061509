import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkRequest } from '../../../../src/core/request/check.ts';
import { DEFAULT_REQUEST_LIMITS } from '../../../../src/core/request/limits.ts';
import { createSignalExtractor } from '../../../../src/core/signals/extract.ts';
import { checkItem } from '../../../../src/inference/check-item.ts';
import { inputLayout } from '../../../../src/inference/input-layout.ts';
import type { ScoreItem } from '../../../../src/ports/accelerator.ts';
import { request } from '../../core/request/requests.ts';
import { floatTensor, longTensor, type ToyFiles } from '../toy-model.ts';
import { toyVersion } from './toy-version.fixture.ts';

const tensorOf = ({ requestTensors, candidateTensors }: ScoreItem, name: string) => {
  const tensor = [...requestTensors, ...candidateTensors].find((each) => each.name === name);
  if (tensor === undefined) throw new Error(`there is no ${name}`);
  return tensor;
};
const floats = (item: ScoreItem, name: string): number[] => {
  const { contents } = tensorOf(item, name);
  return Array.from({ length: contents.length / 4 }, (_, n) => contents.readFloatLE(4 * n));
};
const longs = (item: ScoreItem, name: string): bigint[] => {
  const { contents } = tensorOf(item, name);
  return Array.from({ length: contents.length / 8 }, (_, n) => contents.readBigInt64LE(8 * n));
};
const bytesOf = ({ requestTensors, candidateTensors }: ScoreItem): number =>
  [...requestTensors, ...candidateTensors].reduce((sum, { contents }) => sum + contents.length, 0);

function ids(files: ToyFiles, values: readonly bigint[]): void {
  const [golden] = files.golden.cases;
  if (golden === undefined) throw new Error('there is no case');
  const { contents } = longTensor('segment', [values.length], []);
  const bytes = Buffer.concat([contents, Buffer.from(BigInt64Array.from(values).buffer)]);
  golden.inputs.segment = { datatype: 'INT64', shape: [values.length], base64: bytes.toString('base64') };
}

const shape = fc.record({
  candidates: fc.integer({ min: 0, max: 64 }),
  rows: fc.integer({ min: 0, max: 8 }),
  zeroShare: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
});

describe('a made request', () => {
  it('is one that the version takes, of the shape and the bytes that were asked for', async () => {
    const { items, version } = await toyVersion();
    const layout = inputLayout(version);
    fc.assert(
      fc.property(shape, ({ candidates, rows, zeroShare }) => {
        const asked = { candidates, rows, ...(zeroShare === undefined ? {} : { zeroShare }) };
        const made = items.make(asked);
        const checked = checkItem(layout, made);
        expect(checked.count).toBe(candidates);
        expect(Math.max(0, ...checked.lengths)).toBe(rows);
        expect(bytesOf(made)).toBe(items.bytes(asked));
        expect(made.requestTensors.some(({ name }) => name === 'history')).toBe(rows > 0);
      }),
    );
  });

  it('has the values of the golden cases', async () => {
    const { items, golden } = await toyVersion();
    const made = items.make({ candidates: 64, rows: 8 });
    const known = (name: string): number[] => {
      const { contents } = golden.cases[0]?.inputs[name] ?? {};
      return contents === undefined
        ? []
        : Array.from({ length: contents.length / 4 }, (_, n) => contents.readFloatLE(4 * n));
    };
    for (const name of ['user', 'history', 'item']) {
      const values = new Set(known(name));
      expect(values.size).toBeGreaterThan(1);
      for (const value of floats(made, name)) expect(values).toContain(value);
    }
    expect(new Set(floats(made, 'item')).size).toBeGreaterThan(3);
    expect([1n, 2n]).toContain(longs(made, 'segment')[0]);
  });

  it('has ids with all of their bits', async () => {
    const hash = 2n ** 62n + 1n;
    const { items } = await toyVersion((files) => ids(files, [hash]));
    expect(longs(items.make({ candidates: 1, rows: 0 }), 'segment')).toEqual([hash]);
  });

  it('has zeros for ids, and numbers between 0 and 1, where no golden case has the input', async () => {
    const { items } = await toyVersion((files) => {
      const [golden] = files.golden.cases;
      if (golden !== undefined)
        for (const name of ['segment', 'item'] as const) Reflect.deleteProperty(golden.inputs, name);
    });
    const made = items.make({ candidates: 20, rows: 1 });
    expect(longs(made, 'segment')).toEqual([0n]);
    for (const value of floats(made, 'item')) expect(value > 0 && value <= 1).toBe(true);
  });

  it.each([0, 0.5, 0.9, 1])(
    'has a share of %f zeros in what candidates bring, and only there',
    async (zeroShare) => {
      const { items } = await toyVersion();
      const zeros = Array.from({ length: 40 }, () => items.make({ candidates: 64, rows: 8, zeroShare })).map(
        (made) => floats(made, 'item').filter((value) => value === 0).length,
      );
      const share = zeros.reduce((sum, count) => sum + count, 0) / (40 * 64 * 3);
      expect(Math.abs(share - zeroShare)).toBeLessThan(0.03);
      const [user] = floats(items.make({ candidates: 1, rows: 1, zeroShare: 1 }), 'user');
      expect(user).not.toBe(0);
    },
  );

  it('has the share that was asked for where golden cases are mostly zeros', async () => {
    const { items } = await toyVersion(({ golden: { cases } }) => {
      const [golden] = cases;
      if (golden === undefined) throw new Error('there is no case');
      const { contents } = floatTensor('item', [3, 3], [0, 0, 0, 0, 0, 0, 0, 0, 0.5]);
      golden.inputs.item = { datatype: 'FP32', shape: [3, 3], base64: contents.toString('base64') };
    });
    expect(new Set(floats(items.make({ candidates: 64, rows: 0, zeroShare: 0 }), 'item'))).toEqual(
      new Set([0.5]),
    );
    expect(floats(items.make({ candidates: 64, rows: 0 }), 'item')).toContain(0);
  });

  it('counts its floats as the signal nonZeroShare does', async () => {
    const { items, version } = await toyVersion();
    const made = items.make({ candidates: 30, rows: 3, zeroShare: 0.7 });
    const family = { ...version, ...version.limits, versions: [version] };
    const accepted = checkRequest(
      request({
        model: 'toy',
        baselineCandidates: 30,
        candidateIds: longTensor(
          'ids',
          [30],
          Array.from({ length: 30 }, (_, n) => n),
        ),
        requestTensors: [...made.requestTensors],
        candidateTensors: [...made.candidateTensors],
      }),
      new Map([['toy', family]]),
      DEFAULT_REQUEST_LIMITS,
    );
    if (accepted.status === 'rejected') throw new Error(accepted.message);
    const { request: values, requestNonZeros, candidate } = items.counts(made);
    const nonZeros = floats(made, 'item').filter((value) => value !== 0).length;
    const { nonZeroShare } = createSignalExtractor(new Map()).extract(accepted);
    expect((requestNonZeros + nonZeros) / (values + candidate)).toBeCloseTo(nonZeroShare, 10);
  });

  it('knows whether the version has sequences, whether they may be left out, and floats for candidates', async () => {
    const { items } = await toyVersion();
    expect(items).toMatchObject({ hasSequence: true, mayBeWithoutRows: true, hasCandidateFloats: true });
    const { items: needed } = await toyVersion(({ config }) => {
      for (const input of config.inputs) Reflect.deleteProperty(input, 'optional');
    });
    expect(needed.mayBeWithoutRows).toBe(false);
  });
});

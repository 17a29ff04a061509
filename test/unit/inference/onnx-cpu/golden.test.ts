import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { createOnnxCpuAccelerator } from '../../../../src/inference/onnx-cpu/accelerator.ts';
import type { GoldenCase, GoldenTensor } from '../../../../src/inference/repository/golden.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';
import type { Accelerator, ScoreItem } from '../../../../src/ports/accelerator.ts';
import { scoresOf } from '../../../conformance/accelerator.fixture.ts';

const RELATIVE = 1e-5;
const ABSOLUTE = 1e-6;

const repository = await openRepository(join(import.meta.dirname, '../../../../models/repository'));
const versions = repository.families.flatMap((family) => family.versions);

let accelerator: Accelerator;
beforeAll(() => {
  accelerator = createOnnxCpuAccelerator({ repository, clock: systemClock() });
});
afterAll(() => accelerator.close());

test('no committed version is refused', () => {
  expect(
    repository.refused.map(({ family, version, error }) => `${family}@${version}: ${error.message}`),
  ).toEqual([]);
  expect(versions.length).toBeGreaterThan(0);
});

describe.each(versions)('$family@$version', (version) => {
  test('its scores equal Python onnxruntime’s on committed golden inputs', async () => {
    const { cases } = await repository.readGolden(version);
    const model = await accelerator.load(version.family, version.version);
    let compared = 0;
    for (const golden of cases) {
      const { items, positions } = itemsOf(golden);
      const batch = await model.run(items, 'dense');
      batch.items.forEach((result, row) => {
        const { heads, scores } = scoresOf(result);
        const expected = [...heads.map(({ name }) => golden.outputs[name]), golden.scores];
        [...heads.map(({ values }) => values), scores].forEach((got, output) => {
          const wanted = floats(expected[output]);
          got.forEach((value, i) => {
            const want = wanted[positions[row]?.[i] ?? -1] ?? Number.NaN;
            expect(Math.abs(value - want)).toBeLessThanOrEqual(ABSOLUTE + RELATIVE * Math.abs(want));
            compared += 1;
          });
        });
      });
    }
    expect(compared).toBeGreaterThan(100);
    await model.unload();
  });
});

function floats(tensor: GoldenTensor | undefined): Float32Array {
  const contents = tensor?.contents ?? Buffer.alloc(0);
  return Float32Array.from({ length: contents.length / 4 }, (_, i) => contents.readFloatLE(4 * i));
}

function longs(tensor: GoldenTensor | undefined): number[] {
  const contents = tensor?.contents ?? Buffer.alloc(0);
  return Array.from({ length: contents.length / 8 }, (_, i) => Number(contents.readBigInt64LE(8 * i)));
}

/** The requests of one graph call, as requests send them; `positions`: which rows of the outputs belong to each. */
function itemsOf({ inputs }: GoldenCase): { items: ScoreItem[]; positions: number[][] } {
  const lengths = longs(inputs.history_length);
  const index = longs(inputs.request_index);
  const positions = lengths.map((_, request) => [...index.keys()].filter((i) => index[i] === request));
  const rows = (name: string, picked: readonly number[], rowShape: number[]): Buffer => {
    const bytes = rowShape.reduce((product, size) => product * size, 4);
    const contents = inputs[name]?.contents ?? Buffer.alloc(0);
    return Buffer.concat(picked.map((row) => contents.subarray(row * bytes, (row + 1) * bytes)));
  };
  const [, userWidth = 0] = inputs.user?.shape ?? [];
  const [, longest = 0, historyWidth = 0] = inputs.history?.shape ?? [];
  const [, itemWidth = 0] = inputs.item?.shape ?? [];
  const items = lengths.map((length, request): ScoreItem => {
    const candidates = positions[request] ?? [];
    const history = rows('history', [request], [longest, historyWidth]).subarray(
      0,
      length * historyWidth * 4,
    );
    return {
      requestTensors: [
        {
          name: 'user',
          datatype: 'FP32',
          shape: [userWidth],
          contents: rows('user', [request], [userWidth]),
        },
        { name: 'history', datatype: 'FP32', shape: [length, historyWidth], contents: history },
      ],
      candidateTensors: [
        {
          name: 'item',
          datatype: 'FP32',
          shape: [candidates.length, itemWidth],
          contents: rows('item', candidates, [itemWidth]),
        },
      ],
      hints: {},
      scoreLimit: candidates.length,
    };
  });
  return { items, positions };
}

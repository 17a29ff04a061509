import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { createOnnxCpuAccelerator } from '../../../../src/inference/onnx-cpu/accelerator.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';
import { rankerItem, scoresOf } from '../../../conformance/accelerator.fixture.ts';

describe('a version that is loaded beside others', () => {
  it('scores as it does alone, while they score, and goes without them', async () => {
    const repository = await openRepository('models/repository');
    const accelerator = createOnnxCpuAccelerator({ repository, clock: systemClock() });
    const first = await accelerator.load('ranker', '1');
    const item = rankerItem(1, 8, 3);
    const before = scoresOf((await first.run([item], 'dense')).items[0]);
    const [alone, beside] = await Promise.all([
      accelerator.load('ranker', '2'),
      accelerator.load('ranker', '2', { besideOthers: true }),
      first.run([item], 'dense'),
    ]);
    const expected = scoresOf((await alone.run([item], 'dense')).items[0]);
    expect(scoresOf((await beside.run([item], 'dense')).items[0])).toEqual(expected);
    expect(expected).not.toEqual(before);
    await beside.unload();
    await expect(beside.run([item], 'dense')).rejects.toThrow(/unloaded/);
    expect(scoresOf((await first.run([item], 'dense')).items[0])).toEqual(before);
    await accelerator.close();
  });

  it('that is refused leaves the others as they were', async () => {
    const repository = await openRepository('models/repository');
    const broken = { ...repository, readGraph: async () => new Uint8Array([1, 2, 3]) };
    const accelerator = createOnnxCpuAccelerator({ repository: broken, clock: systemClock() });
    let failed: string | undefined;
    void accelerator.failed.then((reason) => {
      failed = reason;
    });
    await expect(accelerator.load('ranker', '2', { besideOthers: true })).rejects.toThrow(
      /ONNX Runtime refuses it/,
    );
    await accelerator.close();
    expect(failed).toBeUndefined();
  });
});

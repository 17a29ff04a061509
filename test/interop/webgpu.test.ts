import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { MillraceError } from '../../src/core/errors.ts';
import { createOnnxCpuAccelerator } from '../../src/inference/onnx-cpu/accelerator.ts';
import { createOnnxWebgpuAccelerator } from '../../src/inference/onnx-webgpu/accelerator.ts';
import { type ModelRepository, openRepository } from '../../src/inference/repository/open-repository.ts';
import type { Accelerator } from '../../src/ports/accelerator.ts';
import { rankerItem, scoresOf } from '../conformance/accelerator.fixture.ts';
import { describeAccelerator } from '../conformance/accelerator.suite.ts';
import { temporaryFolder } from '../unit/cli/temporary-folder.ts';

const SOURCES = join(import.meta.dirname, '../../src');
const REPOSITORY = join(import.meta.dirname, '../../models/repository');
/** In software a device compiles each version's shaders for seconds. */
const TIMEOUT_MS = 600_000;
/** Tighter than the 10⁻³ that a device may be off by: this one is in software. */
const RELATIVE = 1e-5;

/** `npm run test:interop` starts this file with a device in software; where it is run without one, a device of the machine will do. */
const device = await deviceHere();

/** Only a machine without a device is excused, and not where one was given: whatever else fails is a fault. */
async function deviceHere(): Promise<'a device' | string> {
  if (process.env['VK_ICD_FILENAMES'] !== undefined) return 'a device';
  const repository = await openRepository(REPOSITORY);
  const accelerator = createOnnxWebgpuAccelerator({ repository, clock: systemClock() });
  try {
    await accelerator.load('two-tower', '1');
    return 'a device';
  } catch (error) {
    if (!(error instanceof MillraceError && error.code === 'MODEL_UNAVAILABLE')) throw error;
    return error.message;
  } finally {
    await accelerator.close();
  }
}

describe.skipIf(device !== 'a device')(`onnx-webgpu, on ${device}`, () => {
  describeAccelerator({
    backend: 'onnx-webgpu',
    simulated: false,
    create: (repository) => createOnnxWebgpuAccelerator({ repository, clock: systemClock() }),
    readsTensors: true,
    tellsShapes: true,
  });

  describe('beside onnx-cpu', () => {
    let repository: ModelRepository;
    let gpu: Accelerator;
    let cpu: Accelerator;
    beforeAll(async () => {
      repository = await openRepository(REPOSITORY);
      const clock = systemClock();
      gpu = createOnnxWebgpuAccelerator({ repository, clock });
      cpu = createOnnxCpuAccelerator({ repository, clock });
    });
    afterAll(() => Promise.all([gpu.close(), cpu.close()]));

    it(
      'scores every committed version alike, with histories and without',
      async () => {
        for (const { family, versions } of repository.families)
          for (const { version } of versions) {
            const [onGpu, onCpu] = await Promise.all([gpu.load(family, version), cpu.load(family, version)]);
            const items = [rankerItem(1, 33, 8), rankerItem(2, 5, 0), rankerItem(3, 0, 4)];
            for (const batch of [items, items.slice(1, 2)]) {
              const [got, want] = [await onGpu.run(batch, 'dense'), await onCpu.run(batch, 'dense')];
              want.items.forEach((item, n) => {
                const scores = scoresOf(got.items[n]).scores;
                expect(scores).toHaveLength(scoresOf(item).scores.length);
                scoresOf(item).scores.forEach((score, candidate) => {
                  const difference = Math.abs((scores[candidate] ?? Number.NaN) - score);
                  expect(difference, `${family}@${version}`).toBeLessThanOrEqual(RELATIVE * Math.abs(score));
                });
              });
            }
            await onGpu.unload();
          }
      },
      TIMEOUT_MS,
    );
  });
});

describe('onnx-webgpu without a device', () => {
  it('says so, and what can be done', async () => {
    const script = `
      import { systemClock } from '${SOURCES}/adapters/system/clock.ts';
      import { createOnnxWebgpuAccelerator } from '${SOURCES}/inference/onnx-webgpu/accelerator.ts';
      import { openRepository } from '${SOURCES}/inference/repository/open-repository.ts';
      const repository = await openRepository('${REPOSITORY}');
      const accelerator = createOnnxWebgpuAccelerator({ repository, clock: systemClock() });
      await accelerator.load('two-tower', '1').catch(({ code, message }) => console.log(JSON.stringify({ code, message })));
      await accelerator.close();`;
    const file = temporaryFolder().path('load.ts');
    writeFileSync(file, script);
    const { stdout } = await promisify(execFile)(process.execPath, [file], {
      env: { PATH: process.env['PATH'], VK_ICD_FILENAMES: '/dev/null', VK_DRIVER_FILES: '/dev/null' },
    });
    expect(JSON.parse(stdout)).toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      message: expect.stringMatching(/there is no WebGPU device here .*MILLRACE_WORKER_BACKEND=onnx-cpu/),
    });
  });
});

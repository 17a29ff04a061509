import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { openRepository } from '../../src/inference/repository/open-repository.ts';
import { createSparseCpuAccelerator } from '../../src/inference/sparse-cpu/accelerator.ts';
import { wideItem, writeWideVersion } from '../unit/inference/sparse-cpu/wide-version.ts';
import { type ModelFixture, rankerFixture } from './accelerator.fixture.ts';
import { type AcceleratorUnderTest, describeAccelerator } from './accelerator.suite.ts';

const subject: AcceleratorUnderTest = {
  backend: 'sparse-cpu',
  simulated: false,
  create: (repository) => createSparseCpuAccelerator({ repository, clock: systemClock() }),
  tellsShapes: true,
  readsTensors: true,
};

/** Wide candidates of mostly zeros, and random weights. */
function wideFixture(): ModelFixture {
  const sizes = { inner: 333, columns: 50 };
  let root = '';
  return {
    name: 'a wide model',
    family: 'wide',
    version: '1',
    item: (seed, candidates) => wideItem(sizes, { seed, candidates, zeroShare: 0.95 }),
    async open() {
      root = await mkdtemp(join(tmpdir(), 'millrace-wide-'));
      await writeWideVersion(root, sizes);
      return openRepository(root);
    },
    close: () => rm(root, { recursive: true, force: true }),
  };
}

describeAccelerator(subject);
describeAccelerator({ ...subject, kernel: 'sparse', fixtures: [wideFixture(), rankerFixture()] });

import { systemClock } from '../../src/adapters/system/clock.ts';
import { createSparseCpuAccelerator } from '../../src/inference/sparse-cpu/accelerator.ts';
import { rankerFixture } from './accelerator.fixture.ts';
import { type AcceleratorUnderTest, describeAccelerator } from './accelerator.suite.ts';

const subject: AcceleratorUnderTest = {
  backend: 'sparse-cpu',
  simulated: false,
  create: (repository) => createSparseCpuAccelerator({ repository, clock: systemClock() }),
  readsTensors: true,
};

describeAccelerator(subject);
describeAccelerator({ ...subject, kernel: 'sparse', fixtures: [rankerFixture()] });

import { describe } from 'vitest';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { createOnnxCpuAccelerator } from '../../src/inference/onnx-cpu/accelerator.ts';
import { createSimulatedAccelerator } from '../../src/inference/simulated/accelerator.ts';
import { serviceProfile } from '../../src/inference/simulated/profiles.ts';
import { describeAccelerator } from './accelerator.suite.ts';

const clock = systemClock();

describe('scores from ONNX Runtime', () => {
  describeAccelerator({
    backend: 'simulated',
    simulated: true,
    create: (repository) => {
      const inner = createOnnxCpuAccelerator({ repository, clock });
      return createSimulatedAccelerator(
        { repository, clock, random: seededRandom(1), inner },
        serviceProfile('gpu-a100'),
      );
    },
    tellsShapes: true,
    readsTensors: true,
  });
});

describe('scores from the candidates’ bytes', () => {
  describeAccelerator({
    backend: 'simulated',
    simulated: true,
    create: (repository) =>
      createSimulatedAccelerator({ repository, clock, random: seededRandom(1) }, serviceProfile('fpga')),
    tellsShapes: true,
    readsTensors: true,
  });
});

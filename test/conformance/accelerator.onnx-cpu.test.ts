import { systemClock } from '../../src/adapters/system/clock.ts';
import { createOnnxCpuAccelerator } from '../../src/inference/onnx-cpu/accelerator.ts';
import { describeAccelerator } from './accelerator.suite.ts';

describeAccelerator({
  backend: 'onnx-cpu',
  simulated: false,
  create: (repository) => createOnnxCpuAccelerator({ repository, clock: systemClock() }),
  tellsShapes: true,
  readsTensors: true,
});

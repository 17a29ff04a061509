import { createImmediateAccelerator } from '../../src/inference/immediate.ts';
import { describeAccelerator } from './accelerator.suite.ts';

describeAccelerator({
  backend: 'immediate',
  simulated: true,
  create: (repository) => createImmediateAccelerator({ repository }),
  tellsShapes: false,
  readsTensors: false,
});

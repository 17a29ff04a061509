import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createOnnxHereAccelerator } from '../../examples/backends/onnx-here.ts';
import { describeAccelerator } from './accelerator.suite.ts';

describeAccelerator({
  backend: 'onnx-here',
  simulated: false,
  create: (repository) => createOnnxHereAccelerator({ repository }),
  tellsShapes: true,
  readsTensors: true,
});

it('is shown in the documents as it is', () => {
  const code = readFileSync('examples/backends/onnx-here.ts', 'utf8');
  expect(readFileSync('docs/backends.md', 'utf8')).toContain(`\`\`\`ts\n${code}\`\`\``);
});

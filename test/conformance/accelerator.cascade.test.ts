import { appendFileSync, cpSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { withCascades } from '../../src/inference/cascade/cascade-accelerator.ts';
import { createOnnxCpuAccelerator } from '../../src/inference/onnx-cpu/accelerator.ts';
import { openRepository } from '../../src/inference/repository/open-repository.ts';
import { type ModelFixture, rankerItem } from './accelerator.fixture.ts';
import { describeAccelerator } from './accelerator.suite.ts';

/** The committed ranker before the DCNv2, which has the same heads. Of twelve candidates none is dropped: what one scores does not depend on others then. */
function cascadeFixture(): ModelFixture {
  let root = '';
  return {
    name: 'the committed ranker and DCNv2',
    family: 'dcn',
    version: '1',
    item: rankerItem,
    async open() {
      root = await mkdtemp(join(tmpdir(), 'millrace-cascade-'));
      for (const version of ['ranker/1', 'dcn/1'])
        cpSync(join('models/repository', version), join(root, version), { recursive: true });
      appendFileSync(join(root, 'dcn/1/config.yaml'), '\ncascade: [{ model: ranker@1, keep: 12 }]\n');
      return openRepository(root);
    },
    close: () => rm(root, { recursive: true, force: true }),
  };
}

describeAccelerator({
  backend: 'onnx-cpu',
  simulated: false,
  create: (repository) =>
    withCascades(createOnnxCpuAccelerator({ repository, clock: systemClock() }), repository),
  tellsShapes: false,
  readsTensors: true,
  fixtures: [cascadeFixture()],
});

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { systemClock } from '../../../src/adapters/system/clock.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import { createBackend, loadModels, openModels } from '../../../src/wiring/backends.ts';
import { toyFiles, writeVersion } from '../inference/toy-model.ts';

it('a version that the sparse kernel cannot run is loaded, and the log says which node stands against it', async () => {
  const models = await mkdtemp(join(tmpdir(), 'millrace-models-'));
  await writeVersion(models, toyFiles());
  const { settings } = loadSettings({}, { models, 'worker.backend': 'sparse-cpu' });
  const telemetry = silentTelemetry();
  const repository = await openModels(settings, telemetry);
  const backend = createBackend(settings, 'cpu', {
    repository,
    clock: systemClock(),
    random: seededRandom(1),
  });
  const { loaded } = await loadModels(backend, repository, telemetry);
  expect(loaded).toMatchObject([{ family: 'toy', version: '1', kernels: ['dense'] }]);
  expect(telemetry.logs).toMatchObject([
    {
      level: 'warn',
      message: 'a kernel cannot run a model version',
      fields: { kernel: 'sparse', reason: expect.stringContaining('node Mul → products') },
    },
  ]);
  await backend.close();
  await rm(models, { recursive: true, force: true });
});

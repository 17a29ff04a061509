import { poolOf } from '../../src/core/policy/fleet-pools.ts';
import { growingRepository } from '../../src/inference/repository/growing-repository.ts';
import { startAcceleratorWorker } from '../../src/wiring/accelerator-worker.ts';
import { createBackend, loadModels, openLibrary, openModels } from '../../src/wiring/backends.ts';
import { openFeatureSource } from '../../src/wiring/feature-source.ts';
import { readFleet } from '../../src/wiring/policy-files.ts';
import { runService } from '../run-service.ts';

await runService('accelerator-worker', async (settings, runtime, end) => {
  const fleet = readFleet(settings);
  const { accelerator } = poolOf(fleet, settings.worker.pool);
  const repository = growingRepository(await openModels(settings, runtime.telemetry));
  const { library, close } = openLibrary(settings, { ...runtime, repository });
  const backend = createBackend(settings, accelerator, { ...runtime, repository });
  void backend.failed.then((reason) => {
    runtime.telemetry.logger.error(
      { reason },
      'the accelerator failed; this process ends, its slots go to others',
    );
    end(1);
  });
  const features = openFeatureSource(settings, runtime);
  const models = await loadModels(backend, repository, runtime.telemetry);
  const stage = await startAcceleratorWorker(settings, runtime, {
    ...{ fleet, backend, models, repository, library, features },
    store: runtime.store,
  });
  return [
    {
      ...stage,
      close: () =>
        stage
          .close()
          .then(() => backend.close())
          .then(() => features?.close())
          .then(close),
    },
  ];
});

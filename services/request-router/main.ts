import { openModels } from '../../src/wiring/backends.ts';
import { readFleet } from '../../src/wiring/policy-files.ts';
import { runService } from '../../src/wiring/run-service.ts';
import { startRequestRouter } from '../../src/wiring/stages.ts';

await runService('request-router', async (settings, runtime) => {
  const repository = await openModels(settings, runtime.telemetry);
  return [
    await startRequestRouter(settings, runtime, {
      fleet: readFleet(settings),
      store: runtime.store,
      repository,
    }),
  ];
});

import { openModels } from '../../src/wiring/backends.ts';
import { readFleet } from '../../src/wiring/policy-files.ts';
import { startRequestRouter } from '../../src/wiring/stages.ts';
import { runService } from '../run-service.ts';

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

import { readFleet } from '../../src/wiring/policy-files.ts';
import { startRequestRouter } from '../../src/wiring/request-router.ts';
import { runService } from '../run-service.ts';

await runService('request-router', async (settings, runtime) => [
  await startRequestRouter(settings, runtime, {
    fleet: readFleet(settings),
    store: runtime.store,
    openModels: async () => {
      const { openModels } = await import('../../src/wiring/backends.ts');
      return openModels(settings, runtime.telemetry);
    },
  }),
]);

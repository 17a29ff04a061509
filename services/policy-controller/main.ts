import { readFleet } from '../../src/wiring/policy-files.ts';
import { runService } from '../../src/wiring/run-service.ts';
import { startPolicyController } from '../../src/wiring/stages.ts';

await runService('policy-controller', async (settings, runtime) => [
  await startPolicyController(settings, runtime, { fleet: readFleet(settings), store: runtime.store }),
]);

import { startPolicyController } from '../../src/wiring/policy-controller.ts';
import { readFleet } from '../../src/wiring/policy-files.ts';
import { runService } from '../run-service.ts';

await runService('policy-controller', async (settings, runtime) => [
  await startPolicyController(settings, runtime, { fleet: readFleet(settings), store: runtime.store }),
]);

import { readFleet } from '../../src/wiring/policy-files.ts';
import { startPolicyController } from '../../src/wiring/stages.ts';
import { runService } from '../run-service.ts';

await runService('policy-controller', async (settings, runtime) => [
  await startPolicyController(settings, runtime, { fleet: readFleet(settings), store: runtime.store }),
]);

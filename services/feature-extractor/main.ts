import { openModels } from '../../src/wiring/backends.ts';
import { runService } from '../../src/wiring/run-service.ts';
import { startFeatureExtractor } from '../../src/wiring/stages.ts';

await runService('feature-extractor', async (settings, runtime) => [
  await startFeatureExtractor(settings, runtime, await openModels(settings, runtime.telemetry)),
]);

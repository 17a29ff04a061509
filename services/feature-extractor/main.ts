import { openModels } from '../../src/wiring/backends.ts';
import { startFeatureExtractor } from '../../src/wiring/feature-extractor.ts';
import { runService } from '../run-service.ts';

await runService('feature-extractor', async (settings, runtime) => [
  await startFeatureExtractor(settings, runtime, await openModels(settings, runtime.telemetry)),
]);

/** All stages of the pipeline in one process on one connection to Kafka, beside a relay in one process. Settings come from the environment. */

import { prometheusTelemetry } from '../../src/adapters/prometheus/telemetry.ts';
import { countBuffersInHeapLimit } from '../../src/adapters/system/garbage-collection.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import { poolOf } from '../../src/core/policy/fleet-pools.ts';
import { growingRepository } from '../../src/inference/repository/growing-repository.ts';
import { startAcceleratorWorker } from '../../src/wiring/accelerator-worker.ts';
import { createBackend, loadModels, openLibrary, openModels } from '../../src/wiring/backends.ts';
import { startFeatureExtractor } from '../../src/wiring/feature-extractor.ts';
import { startPolicyController } from '../../src/wiring/policy-controller.ts';
import { readFleet } from '../../src/wiring/policy-files.ts';
import { whenReady } from '../../src/wiring/ready.ts';
import { startRequestRouter } from '../../src/wiring/request-router.ts';
import { openRuntime } from '../../src/wiring/runtime.ts';

const READY_MS = 30_000;

countBuffersInHeapLimit();
const { settings } = loadSettings(process.env);
const telemetry = prometheusTelemetry({ service: 'all-stages', level: settings.logLevel });
const runtime = await openRuntime(settings, 'all-stages', telemetry);
const { store } = runtime;
const fleet = readFleet(settings);
const repository = growingRepository(await openModels(settings, runtime.telemetry));
const { library, close } = openLibrary(settings, { ...runtime, repository });
const { accelerator } = poolOf(fleet, settings.worker.pool);
const backend = createBackend(settings, accelerator, { ...runtime, repository });
const models = await loadModels(backend, repository, runtime.telemetry);
const stages = [
  await startPolicyController(settings, runtime, { fleet, store }),
  await startAcceleratorWorker(settings, runtime, { fleet, backend, models, repository, store, library }),
  await startRequestRouter(settings, runtime, { fleet, store, openModels: async () => repository }),
];
if (settings.topology === 'split') stages.push(await startFeatureExtractor(settings, runtime, repository));
const reason = await whenReady(stages, runtime.clock, READY_MS);
if (reason !== undefined) throw new Error(`not ready within ${READY_MS / 1_000} s: ${reason}`);

process.once('disconnect', () => process.exit(1));
process.once('message', () => {
  void Promise.all(stages.map((stage) => stage.close()))
    .then(() => Promise.all([runtime.close(), backend.close(), close()]))
    .then(() => process.exit(0));
});
process.send?.('ready');

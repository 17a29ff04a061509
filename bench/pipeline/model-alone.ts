import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { systemRandom } from '../../src/adapters/system/random.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import type { ScoreRequest } from '../../src/contracts/records.ts';
import type { ScoreItem } from '../../src/ports/accelerator.ts';
import { createBackend, openModels } from '../../src/wiring/backends.ts';

/** The version that the bench's policy leads to: the newest of the baseline variant. */
export async function modelAlonePerSecond(
  environment: Readonly<Record<string, string>>,
  requests: readonly ScoreRequest[],
  measureMs: number,
): Promise<number> {
  const { settings } = loadSettings(environment);
  const telemetry = silentTelemetry();
  const repository = await openModels(settings, telemetry);
  const backend = createBackend(settings, 'cpu', {
    repository,
    clock: systemClock(),
    random: systemRandom(),
  });
  const family = repository.families.find(({ versions }) =>
    versions.some(({ variant }) => variant === 'baseline'),
  );
  const newest = family?.versions.filter(({ variant }) => variant === 'baseline').at(-1);
  if (newest === undefined) throw new Error('the repository has no baseline version');
  const model = await backend.load(newest.family, newest.version);
  const items = requests.slice(0, settings.worker.batchRequestsMax).map(
    (request): ScoreItem => ({
      requestTensors: request.requestTensors,
      candidateTensors: request.candidateTensors,
      hints: request.hints,
      scoreLimit: request.baselineCandidates,
    }),
  );
  const scoreFor = async (durationMs: number): Promise<number> => {
    const startedMs = performance.now();
    let scored = 0;
    const lane = async (): Promise<void> => {
      while (performance.now() - startedMs < durationMs) {
        await model.run(items, 'dense');
        scored += items.length;
      }
    };
    await Promise.all(Array.from({ length: settings.worker.batchesInFlightMax }, lane));
    return (scored * 1_000) / (performance.now() - startedMs);
  };
  await scoreFor(measureMs / 4);
  const perSecond = await scoreFor(measureMs);
  await backend.close();
  return perSecond;
}

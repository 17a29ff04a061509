import type { LoadedModel } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { LoadedVersions } from './loaded-versions.ts';

export interface UnloadDeps {
  clock: Clock;
  loaded: LoadedVersions;
  /** Whether any request here still waits for this model, or is computed by it. */
  inUse(model: LoadedModel): boolean;
  over: AbortSignal;
}

/** Routers send nothing more to a version by then: it is gone from the heartbeats. */
const DRAIN_MS = 10_000;
const IN_USE_CHECK_MS = 200;

/** Takes a version away that heartbeats do not tell of any more: then requests find it no more, and when none uses it, it goes. */
export async function unload(model: LoadedModel, { clock, loaded, inUse, over }: UnloadDeps): Promise<void> {
  const pause = (ms: number): Promise<void> => new Promise((resolve) => clock.after(ms, resolve));
  await pause(DRAIN_MS);
  loaded.remove(model);
  while (inUse(model) && !over.aborted) await pause(IN_USE_CHECK_MS);
  if (!over.aborted) await model.unload();
}

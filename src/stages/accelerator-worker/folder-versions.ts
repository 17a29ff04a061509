import { versionName } from '../../core/model/published-model.ts';
import type { Accelerator } from '../../ports/accelerator.ts';
import type { Cancel, Clock } from '../../ports/clock.ts';
import type { RandomStream } from '../../ports/random.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { LoadedVersions } from './loaded-versions.ts';
import { tellRefusedKernels } from './refused-kernels.ts';
import { canPass, tryAgainMs } from './try-again.ts';

/** A version of the model folder that could not be loaded when the worker started. */
export interface UnloadedVersion {
  readonly family: string;
  readonly version: string;
  readonly error: unknown;
}

export interface FolderVersionsDeps {
  backend: Pick<Accelerator, 'load'>;
  loaded: LoadedVersions;
  clock: Clock;
  random: RandomStream;
  telemetry: Telemetry;
  /** Called when one more is loaded. */
  onLoaded(): void;
}

interface Missing {
  readonly family: string;
  readonly version: string;
  reason: string;
  failures: number;
  /** Undefined where the same files would fail again. */
  dueMs: number | undefined;
}

/** Tries the versions of the model folder that could not be loaded at the start again, one at a time, for as long as their reasons can pass. */
export class FolderVersions {
  readonly #deps: FolderVersionsDeps;
  readonly #missing: Set<Missing>;
  #cancelWake: Cancel | undefined;
  #isClosed = false;

  constructor(unloaded: readonly UnloadedVersion[], deps: FolderVersionsDeps) {
    this.#deps = deps;
    this.#missing = new Set(
      unloaded.map(({ family, version, error }) => {
        const missing = { family, version, reason: '', failures: 0, dueMs: undefined };
        this.#failed(missing, error);
        return missing;
      }),
    );
  }

  start(): void {
    this.#wakeInTime();
  }

  /** Why each version that is not loaded is not. */
  reasons(): string[] {
    return [...this.#missing].map((missing) => `${versionName(missing)}: ${missing.reason}`);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelWake?.();
  }

  #failed(missing: Missing, error: unknown): void {
    const { clock, random } = this.#deps;
    missing.failures += 1;
    missing.reason = error instanceof Error ? error.message : String(error);
    missing.dueMs = canPass(error) ? clock.monotonicMs() + tryAgainMs(missing.failures, random) : undefined;
  }

  #wakeInTime(): void {
    const { clock } = this.#deps;
    const next = nextDue(this.#missing);
    if (next === undefined || this.#isClosed) return;
    this.#cancelWake = clock.after(
      next.dueMs - clock.monotonicMs(),
      () => void this.#load(next.missing).then(() => this.#wakeInTime()),
    );
  }

  async #load(missing: Missing): Promise<void> {
    const { backend, loaded, telemetry } = this.#deps;
    const { family, version, reason: before } = missing;
    try {
      const model = await backend.load(family, version, { besideOthers: !loaded.isEmpty });
      if (this.#isClosed) return await model.unload();
      this.#missing.delete(missing);
      loaded.addToFolder(model);
      telemetry.logger.info({ family, version }, 'a model version is loaded that could not be before');
      tellRefusedKernels(model, telemetry.logger);
      this.#deps.onLoaded();
    } catch (error) {
      if (this.#isClosed) return;
      this.#failed(missing, error);
      // Once for each reason, however often it is tried.
      if (missing.reason !== before)
        telemetry.logger.error(
          { family, version, reason: missing.reason, triedAgain: canPass(error) },
          'a model version could not be loaded',
        );
    }
  }
}

function nextDue(all: Iterable<Missing>): { missing: Missing; dueMs: number } | undefined {
  const due = [...all].flatMap((missing) =>
    missing.dueMs === undefined ? [] : [{ missing, dueMs: missing.dueMs }],
  );
  return due.sort((a, b) => a.dueMs - b.dueMs)[0];
}

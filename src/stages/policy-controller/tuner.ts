import type { RoutableRequest } from '../../contracts/records.ts';
import { compilePolicy } from '../../core/policy/compile.ts';
import type { PolicyDocument } from '../../core/policy/document.ts';
import { toSignalVector } from '../../core/policy/explain.ts';
import type { Fleet } from '../../core/policy/fleet.ts';
import { effectsOf } from '../../core/tuning/effects.ts';
import type { RolloutPhase, TuningObservation } from '../../core/tuning/tuning-observation.ts';
import { limitsOf, type TuningState } from '../../core/tuning/tuning-state.ts';
import { follow } from '../follow.ts';
import type { StageDeps } from '../stage.ts';
import { TuningWindows } from './tuning-windows.ts';

/** The live policy that is tuned. */
export interface Tuned {
  /** Parsed from the exact text that is live. */
  readonly document: PolicyDocument;
  /** Epoch of the pointer now. */
  readonly epoch: number;
  /** Above every version that was published. */
  readonly nextVersion: number;
  readonly rollout: RolloutPhase;
}

/** Sees what the tuning of policies is decided by. */
export interface Tuner {
  /** A version is live from now on: what it decides is counted, and nothing else. */
  follow(policy: { readonly name: string; readonly version: number; readonly epoch: number }): void;
  /**
   * What was seen of a policy since the last call, or since its version was followed; undefined for a version that was not, which is followed from then
   * on, and where that is not a whole period ago.
   *
   * @param periodMs a whole one
   * @param atMs log time
   */
  observe(tuned: Tuned, state: TuningState, periodMs: number, atMs: number): TuningObservation | undefined;
  close(): Promise<void>;
}

/** Requests that the effect of a step is estimated from: ± 2.5 % of the traffic at most. */
const SAMPLES = 400;
/** A quiet topic gives as many as come in this time, or in half a period: they must be there when it is over. */
const SAMPLE_MS = 30_000;

type Sample = Pick<RoutableRequest, 'signals' | 'context'>;

/** Follows the workers' windows and pools from now on, and samples the features topic once per period. */
export async function openTuner(deps: StageDeps, fleet: Fleet): Promise<Tuner> {
  const policies = new Map<string, TuningWindows>();
  const each = (take: (windows: TuningWindows) => void): void => policies.forEach(take);
  const sampler = new RequestSampler(deps);
  const readers = await Promise.all([
    follow(deps, 'latency-metrics', 'WorkerWindow', (window) =>
      policies.get(window.policy)?.takeWindow(window),
    ),
    follow(deps, 'pool-status', 'PoolStatus', (status) => each((windows) => windows.takeStatus(status))),
  ]);
  const windowsOf = (name: string): TuningWindows => {
    const windows = policies.get(name) ?? new TuningWindows();
    policies.set(name, windows);
    return windows;
  };
  return {
    follow: ({ name, version, epoch }) => windowsOf(name).begin(version, epoch, deps.clock.monotonicMs()),
    observe(tuned, state, periodMs, atMs) {
      const { name, version } = tuned.document;
      const nowMs = deps.clock.monotonicMs();
      const seen = windowsOf(name).observe(version, tuned.epoch, limitsOf(state), periodMs, nowMs);
      const samples = sampler.take();
      // asked again and again until a period is whole, it is sampled once
      if (seen !== undefined || samples.length === 0) sampler.begin(Math.min(SAMPLE_MS, periodMs / 2));
      return seen && { ...seen, atMs, ...decidedBy(tuned, fleet, samples) };
    },
    async close() {
      await Promise.all([...readers.map((reader) => reader.close()), sampler.close()]);
    },
  };
}

function decidedBy(
  { document, nextVersion, rollout }: Tuned,
  fleet: Fleet,
  samples: readonly Sample[],
): Omit<TuningObservation, 'atMs' | 'periodMs' | 'domains'> {
  const compiled = compilePolicy(document, { fleet });
  const vectors = samples.map(({ signals, context }) =>
    toSignalVector(compiled, [...Object.entries(signals), ...Object.entries(context)]),
  );
  return {
    version: document.version,
    values: Object.fromEntries(compiled.tunables.map(({ name, value }) => [name, value])),
    nextVersion,
    rollout,
    effects: effectsOf(document, document.tuned, fleet, vectors),
  };
}

/** The first requests of a period on the features topic: their signals, and nothing else of them. */
class RequestSampler {
  readonly #deps: StageDeps;
  #samples: Sample[] = [];
  #reading: Promise<void> = Promise.resolve();
  #stop: () => void = () => undefined;
  #isReading = false;

  constructor(deps: StageDeps) {
    this.#deps = deps;
  }

  take(): readonly Sample[] {
    return this.#samples;
  }

  begin(atMostMs: number): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#reading = this.#read(atMostMs)
      .catch((error: unknown) => {
        this.#deps.telemetry.logger.warn({ error: String(error) }, 'no requests could be sampled for tuning');
      })
      .finally(() => {
        this.#isReading = false;
      });
  }

  close(): Promise<void> {
    this.#stop();
    return this.#reading;
  }

  async #read(atMostMs: number): Promise<void> {
    const { clock } = this.#deps;
    const found: Sample[] = [];
    let isEnough: () => void = () => undefined;
    const enough = new Promise<void>((resolve) => {
      isEnough = resolve;
    });
    this.#stop = isEnough;
    const reader = await follow(this.#deps, 'features', 'RoutableRequest', ({ signals, context }) => {
      if (found.length < SAMPLES) found.push({ signals, context });
      else isEnough();
    });
    const cancel = clock.after(atMostMs, isEnough);
    await enough;
    cancel();
    await reader.close();
    if (found.length > 0) this.#samples = found;
  }
}

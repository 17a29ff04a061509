import { eventsOf, METRICS, type Metric } from '../../src/core/rollout/metric-evidence.ts';
import type { Observation } from '../../src/core/rollout/observation.ts';
import {
  addWindow,
  HARM,
  logEValue,
  logMeanExp,
  startRatioTest,
} from '../../src/core/rollout/sequential-test.ts';

/** |z| above this is p < 0.05, two-sided. */
const Z_05 = 1.959964;

export type Finding = 'worse' | 'better' | 'alike';

/** A test that is looked at after every window: what does it say of the canary now? */
export interface PeekedTest {
  add(observation: Observation): Finding;
}

function findingOf(z: number): Finding {
  if (Math.abs(z) <= Z_05) return 'alike';
  return z > 0 ? 'worse' : 'better';
}

/** Two proportions with a pooled variance, on all requests so far. */
export class PeekedZTest implements PeekedTest {
  readonly #metric: Metric;
  #canary = 0;
  #control = 0;
  #canaryRequests = 0;
  #controlRequests = 0;

  constructor(metric: Metric) {
    this.#metric = metric;
  }

  add({ canary, stable }: Observation): Finding {
    this.#canary += eventsOf(canary, this.#metric);
    this.#control += eventsOf(stable, this.#metric);
    this.#canaryRequests += canary.requests;
    this.#controlRequests += stable.requests;
    const requests = this.#canaryRequests + this.#controlRequests;
    const pooled = (this.#canary + this.#control) / requests;
    const variance = pooled * (1 - pooled) * (1 / this.#canaryRequests + 1 / this.#controlRequests);
    const apart = this.#canary / this.#canaryRequests - this.#control / this.#controlRequests;
    return findingOf(variance > 0 ? apart / Math.sqrt(variance) : 0);
  }
}

/** Mann and Whitney's U over the windows' rates, as canary judges use it: normal approximation, corrected for ties. */
export class PeekedMannWhitney implements PeekedTest {
  readonly #metric: Metric;
  readonly #canary: number[] = [];
  readonly #control: number[] = [];
  readonly #tied = new Map<number, number>();
  #wins = 0;
  #ties = 0;

  constructor(metric: Metric) {
    this.#metric = metric;
  }

  add({ canary, stable }: Observation): Finding {
    const x = eventsOf(canary, this.#metric) / Math.max(1, canary.requests);
    const y = eventsOf(stable, this.#metric) / Math.max(1, stable.requests);
    for (const each of this.#control) this.#wins += win(x, each);
    this.#canary.push(x);
    for (const each of this.#canary) this.#wins += win(each, y);
    this.#control.push(y);
    this.#countTie(x);
    this.#countTie(y);
    const n = this.#canary.length;
    const variance = ((n * n) / 12) * (2 * n + 1 - this.#ties / (2 * n * (2 * n - 1)));
    return findingOf(variance > 0 ? (this.#wins - (n * n) / 2) / Math.sqrt(variance) : 0);
  }

  /** Σ (t³ − t) over groups of t equal values. */
  #countTie(value: number): void {
    const t = this.#tied.get(value) ?? 0;
    this.#ties += 3 * t * t + 3 * t;
    this.#tied.set(value, t + 1);
  }
}

function win(x: number, y: number): number {
  if (x > y) return 1;
  return x === y ? 0.5 : 0;
}

/** Our own test of harm, but with the share that was declared in place of the one that came. */
export class DeclaredExposure implements PeekedTest {
  readonly #exposure: number;
  #tests = METRICS.map(() => startRatioTest(HARM.null, HARM.alternatives));

  constructor(percent: number) {
    this.#exposure = percent / 100;
  }

  add({ canary, stable }: Observation): Finding {
    this.#tests = this.#tests.map((test, index) => {
      const metric = METRICS[index] ?? 'errors';
      const [canaryEvents, controlEvents] = [eventsOf(canary, metric), eventsOf(stable, metric)];
      return addWindow(test, { exposure: this.#exposure, canaryEvents, controlEvents });
    });
    return logMeanExp(this.#tests.map(logEValue)) >= Math.log(HARM.threshold) ? 'worse' : 'alike';
  }
}

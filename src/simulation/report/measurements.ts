import { LatencySketch } from '../../core/latency/sketch.ts';
import type { OutcomeCounts } from '../../core/outcome/ledger.ts';
import type { OutcomeKind } from '../../core/outcome/outcome.ts';
import { LatencySamples } from './latency-samples.ts';
import { rounded } from './rounded.ts';
import type { LatencySummary, LeafShare, Series } from './simulation-report.ts';

/** As LatencySketch promises. */
const RELATIVE_ERROR = 0.01;
/** A result as an outside reader sees it. */
export interface Answer {
  readonly outcome: OutcomeKind;
  readonly latencyMs: number;
  readonly leaf: string | undefined;
}

/** Counts arrivals and answers, over the whole run and per step of it. */
export class Measurements {
  readonly stepMs: number;
  readonly #latency = new LatencySamples();
  #step = new Step();
  readonly #steps: Step[] = [];
  readonly #leaves = new Map<string, number>();
  #inFlight = 0;

  constructor(stepMs: number) {
    this.stepMs = stepMs;
  }

  arrived(): void {
    this.#step.arrivals += 1;
    this.#inFlight += 1;
  }

  answered({ outcome, latencyMs, leaf }: Answer): void {
    this.#inFlight -= 1;
    this.#step.outcomes[countOf(outcome)] += 1;
    if (leaf !== undefined) this.#leaves.set(leaf, (this.#leaves.get(leaf) ?? 0) + 1);
    if (outcome !== 'scored' && outcome !== 'degraded') return;
    this.#latency.add(latencyMs);
    this.#step.latency.add(latencyMs);
  }

  /** A step is over. */
  stepEnded(): void {
    this.#step.inFlight = this.#inFlight;
    this.#steps.push(this.#step);
    this.#step = new Step();
  }

  latency(): LatencySummary {
    return this.#latency.summary();
  }

  leaves(): LeafShare[] {
    const routed = [...this.#leaves.values()].reduce((sum, requests) => sum + requests, 0);
    return [...this.#leaves]
      .map(([leaf, requests]) => ({ leaf, requests, share: rounded(requests / routed) }))
      .sort((a, b) => b.requests - a.requests || (a.leaf < b.leaf ? -1 : 1));
  }

  series(): Omit<Series, 'pools'> {
    const steps = this.#steps;
    const quantile = ({ latency }: Step, q: number): number | null =>
      latency.count === 0 ? null : rounded(latency.quantileMs(q));
    const outcomes = (outcome: keyof OutcomeCounts): number[] => steps.map((step) => step.outcomes[outcome]);
    return {
      stepMs: this.stepMs,
      relativeError: RELATIVE_ERROR,
      arrivals: steps.map(({ arrivals }) => arrivals),
      outcomes: {
        scored: outcomes('scored'),
        degraded: outcomes('degraded'),
        expired: outcomes('expired'),
        rejected: outcomes('rejected'),
        deadLettered: outcomes('deadLettered'),
      },
      inFlight: steps.map(({ inFlight }) => inFlight),
      p50Ms: steps.map((step) => quantile(step, 0.5)),
      p99Ms: steps.map((step) => quantile(step, 0.99)),
    };
  }
}

class Step {
  arrivals = 0;
  inFlight = 0;
  readonly outcomes: OutcomeCounts = { scored: 0, degraded: 0, expired: 0, rejected: 0, deadLettered: 0 };
  readonly latency = new LatencySketch();
}

function countOf(outcome: OutcomeKind): keyof OutcomeCounts {
  return outcome === 'dead-lettered' ? 'deadLettered' : outcome;
}

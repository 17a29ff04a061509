import type { WorkPart } from '../../core/overload/priced-work.ts';
import type { SeededRandom } from '../../core/random/seeded-random.ts';
import { type Draw, drawExponential, drawsOf } from '../engine/draws.ts';
import type { PoolRequest } from './pool-request.ts';

/** From `fromMs` on, the load is this multiple of what the pool can do when every request runs in full. */
export interface LoadStep {
  readonly fromMs: number;
  readonly load: number;
}

export interface PoolTrafficSettings {
  readonly servers: number;
  /** In order of time; the first is from 0 on. */
  readonly steps: readonly LoadStep[];
  /** Standard deviation of the logarithm of a request's value. */
  readonly valueSigma: number;
  /** Standard deviation of the logarithm of real over predicted service time. */
  readonly noiseSigma: number;
}

/** Service time of a request: C_R + N·C_C, ms. */
const REQUEST_MS = 2;
const CANDIDATE_MS = 0.02;
const BASELINE_MEAN = 200;
const BASELINE_SIGMA = 0.65;
const EXTRA_STEPS = 4;
/** So much of the worth of the first candidates is left in as many that follow: the baseline has 0.8 of a full request's value. */
const VALUE_RATIO = 0.25;
const USERS = 10_000;
const TIERS = 10;
const TIER_SAMPLE = 4_000;
const BASE_WORTH = worth(1);
const STEP_WORTHS = Array.from(
  { length: EXTRA_STEPS },
  (_, step) => worth(1 + (step + 1) / EXTRA_STEPS) - worth(1 + step / EXTRA_STEPS),
);
/** Baseline and as many extras. */
const MEAN_FULL_MS = REQUEST_MS + 2 * BASELINE_MEAN * CANDIDATE_MS;

/**
 * Requests of a pool, drawn one after another: Poisson arrivals, lognormal sizes and values. A request brings as many extras as baseline candidates, in
 * four steps; value falls geometrically along the list, so that on the mean the baseline costs 0.6 of a full request and is worth 0.8 of it.
 * The same seed gives the same requests whatever serves them.
 */
export class PoolTraffic {
  readonly #settings: PoolTrafficSettings;
  readonly #between: Draw;
  readonly #size: Draw;
  readonly #value: Draw;
  readonly #noise: Draw;
  readonly #users: { below(below: number): number };
  readonly #tierEdges: readonly number[];
  #nowMs = 0;
  #step = 0;

  constructor(settings: PoolTrafficSettings, random: SeededRandom) {
    this.#settings = settings;
    const arrivals = random.stream('arrivals');
    this.#between = () => drawExponential(arrivals, 1);
    const { valueSigma, noiseSigma } = settings;
    const sizes = { kind: 'lognormal', mean: BASELINE_MEAN, sigma: BASELINE_SIGMA } as const;
    const values = { kind: 'lognormal', mean: 1, sigma: valueSigma } as const;
    this.#size = drawsOf(sizes, random.stream('sizes'));
    this.#value = drawsOf(values, random.stream('values'));
    this.#noise = drawsOf({ kind: 'lognormal', mean: 1, sigma: noiseSigma }, random.stream('noise'));
    this.#users = random.stream('users');
    const [size, value] = [
      drawsOf(sizes, random.stream('tier sizes')),
      drawsOf(values, random.stream('tier values')),
    ];
    this.#tierEdges = quantiles(Array.from({ length: TIER_SAMPLE }, () => density(wholeOf(size()), value())));
  }

  next(): PoolRequest {
    this.#nowMs = this.#nextArrivalMs();
    const candidates = wholeOf(this.#size());
    const value = this.#value();
    const dense = density(candidates, value);
    const tier = this.#tierEdges.findIndex((edge) => dense >= edge);
    const { base, extras } = partsOf(candidates, value);
    return {
      base,
      extras,
      sentMs: this.#nowMs,
      user: this.#users.below(USERS),
      noise: this.#noise(),
      densityTier: tier < 0 ? TIERS - 1 : tier,
      attempts: 0,
      isAnswered: false,
    };
  }

  /** What is left of a gap when the load changes is as long again at the new rate (Poisson arrivals have no memory). */
  #nextArrivalMs(): number {
    let left = this.#between();
    let nowMs = this.#nowMs;
    const { servers, steps } = this.#settings;
    for (;;) {
      const rate = ((steps[this.#step]?.load ?? 0) * servers) / MEAN_FULL_MS;
      const untilMs = steps[this.#step + 1]?.fromMs ?? Number.POSITIVE_INFINITY;
      const atMs = nowMs + left / rate;
      if (atMs <= untilMs) return atMs;
      left -= (untilMs - nowMs) * rate;
      nowMs = untilMs;
      this.#step += 1;
    }
  }
}

/** Share of a full request's value that the first so many candidates have, by how many times the baseline they are. */
function worth(times: number): number {
  return (1 - VALUE_RATIO ** times) / (1 - VALUE_RATIO ** 2);
}

function partsOf(candidates: number, value: number): { base: WorkPart; extras: WorkPart[] } {
  const costMs = (candidates * CANDIDATE_MS) / EXTRA_STEPS;
  return {
    base: { costMs: REQUEST_MS + candidates * CANDIDATE_MS, value: value * BASE_WORTH },
    extras: STEP_WORTHS.map((share) => ({ costMs, value: value * share })),
  };
}

/** Of the whole request: all shares sum to 1. */
function density(candidates: number, value: number): number {
  return value / (REQUEST_MS + 2 * candidates * CANDIDATE_MS);
}

function wholeOf(size: number): number {
  return Math.max(1, Math.round(size));
}

/** The densities that bound the tiers from below, the densest first; the last tier has no bound. */
function quantiles(densities: readonly number[]): number[] {
  const sorted = densities.toSorted((a, b) => b - a);
  return Array.from(
    { length: TIERS - 1 },
    (_, tier) => sorted[Math.floor(((tier + 1) * sorted.length) / TIERS)] ?? 0,
  );
}

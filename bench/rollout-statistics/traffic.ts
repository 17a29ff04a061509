import type { Generator } from '../../src/core/random/generator.ts';
import type { ArmObservation, Observation } from '../../src/core/rollout/observation.ts';
import { drawBinomial, drawNormal, drawPoisson } from './draws.ts';
import { chanceOver, latencyExceededBy } from './latency.ts';
import { type Crowd, drawPopulation, type Population, SLICES } from './population.ts';

export const WINDOW_MS = 10_000;
const REQUESTS_PER_WINDOW = 10_000;
/** How often the traffic of a followed key changes. */
const WINDOWS_PER_PHASE = 6;

/** Shares of the requests of a plain key. */
export interface BaseRates {
  readonly errors: number;
  readonly deadLetters: number;
  readonly deadlineMisses: number;
}

/** What the new policy does to the canary: factors of rates, and errors that come on top. */
export interface Effect {
  readonly errors?: number;
  readonly addedErrors?: number;
  readonly deadlineMisses?: number;
  readonly over?: readonly [number, number, number];
}

interface Mix {
  weight: number;
  errors: number;
  over: number[];
}

export interface TrafficOptions {
  readonly rates: BaseRates;
  readonly effect: Effect;
  readonly crowd: Crowd;
  readonly withoutHeaviest: boolean;
}

const limits = new Map<Crowd, readonly [number, number, number]>();

/** τ of the stages: what 50, 5 and 1 % of all requests exceed under the stable policy. */
function limitsOf(crowd: Crowd): readonly [number, number, number] {
  const known = limits.get(crowd);
  if (known !== undefined) return known;
  const exceededBy = (share: number) => latencyExceededBy(share, crowd.kinds);
  const found = [exceededBy(0.5), exceededBy(0.05), exceededBy(0.01)] as const;
  limits.set(crowd, found);
  return found;
}

/** The windows of one rollout: 1 000 requests a second, in counts. */
export class Traffic {
  readonly #random: Generator;
  readonly #rates: BaseRates;
  readonly #effect: Effect;
  readonly #population: Population;
  readonly #crowd: Crowd;
  readonly #limitsMs: readonly [number, number, number];
  readonly #overByKind: readonly (readonly number[])[];
  #cells: Float64Array;
  #windows = 0;

  constructor(random: Generator, options: TrafficOptions) {
    this.#random = random;
    this.#crowd = options.crowd;
    this.#limitsMs = limitsOf(options.crowd);
    this.#overByKind = options.crowd.kinds.map(({ latency }) =>
      this.#limitsMs.map((ms) => chanceOver(ms, latency)),
    );
    this.#rates = options.rates;
    this.#effect = options.effect;
    this.#population = drawPopulation(random, options.crowd, options.withoutHeaviest);
    this.#cells = this.#population.steady;
  }

  next(percent: number): Observation {
    if (this.#windows % WINDOWS_PER_PHASE === 0) this.#changePhase();
    this.#windows += 1;
    const [canary, stable] = this.#mixes(percent);
    return {
      atMs: this.#windows * WINDOW_MS,
      windowMs: WINDOW_MS,
      stable: this.#draw(stable, {}),
      canary: this.#draw(canary, this.#effect),
      stableLatencyMs: this.#limitsMs,
      shadow: undefined,
      pools: {},
      scores: {},
      metrics: {},
      fingerprint: '',
      refusals: [],
      modelsNotReady: [],
    };
  }

  #changePhase(): void {
    const sigma = this.#crowd.activitySigma;
    this.#cells = this.#population.steady.slice();
    for (const { cell, weight } of this.#population.followed) {
      const activity = Math.exp(sigma * drawNormal(this.#random) - sigma ** 2 / 2);
      this.#cells[cell] = (this.#cells[cell] ?? 0) + weight * activity;
    }
  }

  #mixes(percent: number): [Mix, Mix] {
    const canary: Mix = { weight: 0, errors: 0, over: [0, 0, 0] };
    const stable: Mix = { weight: 0, errors: 0, over: [0, 0, 0] };
    const { kinds } = this.#crowd;
    this.#cells.forEach((weight, cell) => {
      const mix = (SLICES[Math.floor(cell / kinds.length)] ?? 100) <= percent ? canary : stable;
      const kind = cell % kinds.length;
      const over = this.#overByKind[kind] ?? [];
      mix.weight += weight;
      mix.errors += weight * (kinds[kind]?.errors ?? 1);
      for (let i = 0; i < 3; i++) mix.over[i] = (mix.over[i] ?? 0) + weight * (over[i] ?? 0);
    });
    return [canary, stable];
  }

  #draw(mix: Mix, effect: Effect): ArmObservation {
    const random = this.#random;
    const requests = drawPoisson(random, mix.weight * REQUESTS_PER_WINDOW);
    const worse = mix.weight === 0 ? 0 : mix.errors / mix.weight;
    const events = (rate: number) => drawBinomial(random, requests, Math.min(1, rate));
    const errors = events(this.#rates.errors * worse * (effect.errors ?? 1) + (effect.addedErrors ?? 0));
    const deadLettered = events(this.#rates.deadLetters * worse);
    const deadlineMissed = events(this.#rates.deadlineMisses * worse * (effect.deadlineMisses ?? 1));
    return { requests, errors, deadLettered, deadlineMissed, over: this.#drawOver(requests, mix, effect) };
  }

  /** Whoever is over p99 is over p95 as well: drawn one out of the other. */
  #drawOver(requests: number, mix: Mix, { over: factors = [1, 1, 1] }: Effect): [number, number, number] {
    const chance = (i: number) => Math.min(1, ((mix.over[i] ?? 0) / mix.weight) * (factors[i] ?? 1));
    const [p50, p95, p99] = [chance(0), chance(1), chance(2)];
    const over50 = drawBinomial(this.#random, requests, p50);
    const over95 = drawBinomial(this.#random, over50, Math.min(1, p95 / p50));
    return [over50, over95, drawBinomial(this.#random, over95, Math.min(1, p99 / p95))];
  }
}

import { type CompiledPolicy, compilePolicy } from '../../src/core/policy/compile.ts';
import { leafAt, type SignalVector } from '../../src/core/policy/explain.ts';
import type { Fleet } from '../../src/core/policy/fleet.ts';
import { parsePolicy } from '../../src/core/policy/parse.ts';
import type { Generator } from '../../src/core/random/generator.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { childOfStep } from '../../src/core/tuning/child-of-step.ts';
import { decideTuning } from '../../src/core/tuning/decide-tuning.ts';
import { effectsOf } from '../../src/core/tuning/effects.ts';
import { evolveTuning } from '../../src/core/tuning/evolve-tuning.ts';
import type { TuningEvent } from '../../src/core/tuning/tuning-event.ts';
import {
  type DomainObservation,
  domainOf,
  type Effect,
  type LatencySummary,
  type RolloutPhase,
  type TuningObservation,
} from '../../src/core/tuning/tuning-observation.ts';
import { INITIAL_TUNING, limitsOf, type TuningState } from '../../src/core/tuning/tuning-state.ts';
import { DEFAULT_TUNING, type TuningTerms } from '../../src/core/tuning/tuning-terms.ts';

/** Whether the two memory domains share the workers of one pool, or each has a pool of its own. */
export type Pools = 'one' | 'two';

/** Two memory domains, and a constant that divides the traffic between them. */
export function policyText({ step = '25%', pools = 'two' }: { step?: string; pools?: Pools } = {}): string {
  const other = pools === 'one' ? 'gpu-a100' : 'gpu-v100';
  return `apiVersion: millrace/v1
kind: RoutingPolicy
name: tuned
version: 1
signals: {activationBytes: int}
tree:
  - id: large
    when: 'activationBytes > tune("hbm-floor", 65536, min: 32768, max: 262144, step: ${step})'
    to: {accelerator: gpu-a100, kernel: dense, memory: hbm}
  - id: small
    to: {accelerator: ${other}, kernel: dense, memory: l2}
tests:
  - {signals: {activationBytes: 300000}, leaf: large}
  - {signals: {activationBytes: 1000}, leaf: small}
`;
}

export const FLEET: Fleet = {
  name: 'two-domains',
  accelerators: new Map([
    [
      'gpu-a100',
      {
        kernels: ['dense'],
        memories: ['hbm', 'l2'],
        pools: [{ pool: 'a100', capacityClass: 'dedicated', simulated: true }],
      },
    ],
    [
      'gpu-v100',
      {
        kernels: ['dense'],
        memories: ['l2'],
        pools: [{ pool: 'v100', capacityClass: 'dedicated', simulated: true }],
      },
    ],
  ]),
};

export type Memory = 'hbm' | 'l2';

export interface LoopOptions {
  readonly seed: number;
  readonly step?: string;
  readonly pools?: Pools;
  readonly terms?: TuningTerms;
  /** Requests per second, Poisson. */
  readonly rate?: number;
  /** Mean utilisation of each domain in good times. */
  readonly load?: number;
  /** Spread of kernel times: σ of their logarithm. */
  readonly sigma?: number;
  /** How many times as long a kernel takes; 1 in good times. */
  slowdown?(memory: Memory, nowMs: number): number;
  /** Factor of the rate. */
  traffic?(nowMs: number): number;
  rollout?(period: number): RolloutPhase;
  /** Called after each period; may put another policy in force, as a person would. */
  afterPeriod?(loop: TuningLoop): void;
  /** Fixed effects spare the compiler where the constant never moves. */
  readonly fixedEffects?: readonly Effect[];
}

export interface PeriodReport {
  readonly period: number;
  readonly value: number;
  readonly events: readonly TuningEvent[];
  /** Of the requests that the untuned policy sends to a domain, the share that went to the other one. */
  readonly moved: Readonly<Record<Memory, number>>;
  readonly hbmP50Ms: number;
  readonly l2P50Ms: number;
}

/** Workers per domain. */
const SERVERS = 4;
const SAMPLES = 400;
const MIN_BYTES = 16_384;
const MAX_BYTES = 262_144;

class Domain {
  readonly pool: string;
  readonly memory: Memory;
  /** When each worker of its pool is free. */
  readonly #workers: number[];
  busyMs = 0;
  queue: number[] = [];
  kernel: number[] = [];
  endToEnd: number[] = [];

  constructor(pool: string, memory: Memory, workers: number[]) {
    this.pool = pool;
    this.#workers = workers;
    this.memory = memory;
  }

  get name(): string {
    return domainOf(this.pool, this.memory);
  }

  /** First come, first served, by whichever worker is free first. */
  serve(
    arrivalMs: number,
    serviceMs: (startMs: number) => number,
  ): { queueMs: number; kernelMs: number; endMs: number } {
    const workers = this.#workers;
    let first = 0;
    for (const [index, freeMs] of workers.entries()) if (freeMs < (workers[first] ?? 0)) first = index;
    const startMs = Math.max(arrivalMs, workers[first] ?? 0);
    const kernelMs = serviceMs(startMs);
    const endMs = startMs + kernelMs;
    workers[first] = endMs;
    return { queueMs: startMs - arrivalMs, kernelMs, endMs };
  }
}

interface Done {
  readonly domain: Domain;
  readonly version: number;
  readonly queueMs: number;
  readonly kernelMs: number;
  readonly endToEndMs: number;
  readonly endMs: number;
}

/** The controller in a closed loop with two domains, in virtual time. */
export class TuningLoop {
  state: TuningState = INITIAL_TUNING;
  readonly reports: PeriodReport[] = [];
  text: string;
  version = 1;
  compiled: CompiledPolicy;
  readonly #options: LoopOptions;
  readonly #terms: TuningTerms;
  readonly #arrivals: Generator;
  readonly #sizes: Generator;
  readonly #service: Generator;
  readonly #untuned: CompiledPolicy;
  readonly #hbm: Domain;
  readonly #l2: Domain;
  #nowMs = 0;
  #nextMs = 0;
  #running: Done[] = [];
  #samples: SignalVector[] = [];

  constructor(options: LoopOptions) {
    this.#options = options;
    this.#terms = options.terms ?? DEFAULT_TUNING;
    this.text = policyText(options);
    this.compiled = compilePolicy(parsePolicy(this.text), { fleet: FLEET });
    this.#untuned = this.compiled;
    const workers = (count: number): number[] => Array.from({ length: count }, () => 0);
    const shared = workers(2 * SERVERS);
    const isOne = options.pools === 'one';
    this.#hbm = new Domain('a100', 'hbm', isOne ? shared : workers(SERVERS));
    this.#l2 = isOne ? new Domain('a100', 'l2', shared) : new Domain('v100', 'l2', workers(SERVERS));
    const random = seededRandom(options.seed);
    this.#arrivals = random.stream('arrivals');
    this.#sizes = random.stream('sizes');
    this.#service = random.stream('service');
  }

  run(periods: number): this {
    for (let i = 0; i < periods; i += 1) this.#period();
    return this;
  }

  get value(): number {
    return this.compiled.tunables[0]?.value ?? Number.NaN;
  }

  /** Of the last look. */
  effects(): readonly Effect[] {
    return this.state.last?.effects ?? [];
  }

  /** Steps of all periods, by period. */
  steps(): { period: number; event: Extract<TuningEvent, { type: 'tuning-stepped' }> }[] {
    return this.reports.flatMap(({ period, events }) =>
      events.flatMap((event) => (event.type === 'tuning-stepped' ? [{ period, event }] : [])),
    );
  }

  /** Puts a child in force, as the controller or a person would: through its text. */
  publish(name: string, to: number): void {
    this.version += 1;
    this.text = childOfStep(this.text, `sha256:${'0'.repeat(64)}`, { name, to, version: this.version });
    this.compiled = compilePolicy(parsePolicy(this.text), { fleet: FLEET });
  }

  #period(): void {
    const endMs = this.#nowMs + this.#terms.periodMs;
    const meant = { hbm: 0, l2: 0 };
    const moved = { hbm: 0, l2: 0 };
    this.#samples = [];
    while (this.#nextMs < endMs) {
      const { home, taken } = this.#arrive(this.#nextMs);
      meant[home] += 1;
      if (home !== taken) moved[home] += 1;
      this.#nextMs += this.#gapMs(this.#nextMs);
    }
    this.#nowMs = endMs;
    const observation = this.#observe(endMs);
    const events = decideTuning(this.state, observation, this.#terms);
    for (const event of events) this.#apply(event);
    this.reports.push({
      period: this.reports.length + 1,
      value: observation.values['hbm-floor'] ?? Number.NaN,
      events,
      moved: { hbm: moved.hbm / Math.max(1, meant.hbm), l2: moved.l2 / Math.max(1, meant.l2) },
      hbmP50Ms: observation.domains[this.#hbm.name]?.latency.endToEnd.p50Ms ?? 0,
      l2P50Ms: observation.domains[this.#l2.name]?.latency.endToEnd.p50Ms ?? 0,
    });
    this.#options.afterPeriod?.(this);
  }

  #apply(event: TuningEvent): void {
    this.state = evolveTuning(this.state, event);
    if (event.type === 'tuning-stepped') this.publish(event.name, event.to);
  }

  #gapMs(nowMs: number): number {
    const { rate = 10, traffic } = this.#options;
    return (-Math.log(1 - this.#arrivals.next()) * 1_000) / (rate * (traffic?.(nowMs) ?? 1));
  }

  #arrive(nowMs: number): { home: Memory; taken: Memory } {
    const bytes = MIN_BYTES * (MAX_BYTES / MIN_BYTES) ** this.#sizes.next();
    const sample: SignalVector = { signals: Float64Array.of(bytes), context: {} };
    if (this.#samples.length < SAMPLES) this.#samples.push(sample);
    const taken = memoryOf(this.compiled, sample);
    const domain = taken === 'hbm' ? this.#hbm : this.#l2;
    const served = domain.serve(nowMs, (startMs) => this.#kernelMs(taken, bytes, startMs));
    this.#running.push({
      domain,
      version: this.version,
      ...served,
      endToEndMs: served.endMs - nowMs,
    });
    return { home: memoryOf(this.#untuned, sample), taken };
  }

  /** Larger requests take longer, though not in proportion; the mean over each half of the traffic is the same in good times. */
  #kernelMs(memory: Memory, bytes: number, startMs: number): number {
    const { rate = 10, load = 0.6, sigma = 0.5, slowdown } = this.#options;
    const meanMs = (load * SERVERS * 1_000) / (rate / 2);
    const usualBytes = memory === 'hbm' ? 131_072 : 32_768;
    const noise = Math.exp(sigma * normal(this.#service) - sigma ** 2 / 2);
    return meanMs * (bytes / usualBytes) ** 0.3 * noise * (slowdown?.(memory, startMs) ?? 1);
  }

  #observe(nowMs: number): TuningObservation {
    const limits = limitsOf(this.state);
    for (const domain of [this.#hbm, this.#l2]) {
      domain.queue = [];
      domain.kernel = [];
      domain.endToEnd = [];
      domain.busyMs = 0;
    }
    const running: Done[] = [];
    for (const done of this.#running) {
      if (done.endMs > nowMs) running.push(done);
      else if (done.version === this.version) {
        done.domain.queue.push(done.queueMs);
        done.domain.kernel.push(done.kernelMs);
        done.domain.endToEnd.push(done.endToEndMs);
        done.domain.busyMs += done.kernelMs;
      }
    }
    this.#running = running;
    const { periodMs } = this.#terms;
    const utilisationOf = (pool: string): number => {
      const own = [this.#hbm, this.#l2].filter((domain) => domain.pool === pool);
      const busyMs = own.reduce((sum, each) => sum + each.busyMs, 0);
      return Math.min(1, busyMs / (own.length * SERVERS * periodMs));
    };
    const observe = ({ name, pool, memory, queue, kernel, endToEnd }: Domain): DomainObservation => ({
      pool,
      memory,
      requests: queue.length,
      utilisation: utilisationOf(pool),
      simulated: false,
      latency: {
        queue: summarise(queue, limits[name]?.queue),
        kernel: summarise(kernel, limits[name]?.kernel),
        endToEnd: summarise(endToEnd, limits[name]?.endToEnd),
      },
    });
    const { document } = this.compiled;
    return {
      atMs: nowMs,
      periodMs,
      version: this.version,
      values: { 'hbm-floor': this.value },
      nextVersion: this.version + 1,
      rollout: this.#options.rollout?.(this.reports.length + 1) ?? 'none',
      domains: Object.fromEntries([this.#hbm, this.#l2].map((domain) => [domain.name, observe(domain)])),
      effects: this.#options.fixedEffects ?? effectsOf(document, document.tuned, FLEET, this.#samples),
    };
  }
}

function memoryOf(policy: CompiledPolicy, { signals }: SignalVector): Memory {
  return leafAt(policy, policy.decide(signals)).target.memory === 'hbm' ? 'hbm' : 'l2';
}

function normal(draws: Generator): number {
  return Math.sqrt(-2 * Math.log(1 - draws.next())) * Math.cos(2 * Math.PI * draws.next());
}

function summarise(values: number[], limitMs: number | undefined): LatencySummary {
  const sorted = Float64Array.from(values).sort();
  const at = (q: number): number => sorted[Math.floor(q * (sorted.length - 1))] ?? 0;
  const over =
    limitMs === undefined ? 0 : values.reduce((sum, value) => (value > limitMs ? sum + 1 : sum), 0);
  return { count: values.length, p50Ms: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99), over };
}

import { POLL_MS } from '../../stages/pointer-follower.ts';
import { REPORT_EVERY_MS } from '../../stages/request-router/policy-source.ts';
import type { SimulatedFleet } from '../fleet/simulated-fleet.ts';
import { BusMeter } from '../report/bus-meter.ts';
import { type KafkaAssumptions, type KafkaPlan, planKafka, type TopicLoad } from '../report/kafka-plan.ts';
import type { SimulatedStages } from './simulated-stages.ts';

/** For which load a cluster is planned, and by what. */
export interface SizingOptions {
  /** Times the simulated load. */
  readonly scale: number;
  readonly assumptions: KafkaAssumptions;
}

/** Measures the topics of a run, for a plan of the cluster that would carry them. */
export class BusSizing {
  readonly #stages: SimulatedStages;
  readonly #options: SizingOptions;
  readonly #meter: BusMeter;

  /** @param watched topics that the run reads besides its books */
  constructor(stages: SimulatedStages, options: SizingOptions, watched: readonly string[]) {
    this.#stages = stages;
    this.#options = options;
    this.#meter = new BusMeter(new Set([stages.topics.ingress(), ...watched]));
    this.#meter.begin(stages.traffic(), stages.clock.monotonicMs());
  }

  stepEnded(isLast: boolean): void {
    this.#meter.stepEnded(this.#stages.traffic(), this.#stages.clock.monotonicMs(), isLast);
  }

  plan({ pools, routers }: Pick<SimulatedFleet, 'pools' | 'routers'>): KafkaPlan {
    const { topics } = this.#stages;
    const slots = new Map(pools.map(({ pool, slots: of }) => [topics.dispatch(pool), of]));
    const loads = [...this.#meter.busiest()].map(
      ([name, rates]): TopicLoad => ({
        topic: name.slice(topics.prefix.length + 1),
        ...rates,
        slots: slots.get(name) ?? 0,
        isReadByAll: name === topics.fixed('pool-status'),
      }),
    );
    const redisPerSecond = storeRate({
      routers,
      workers: [...slots.values()].reduce((sum, of) => sum + of, 0),
    });
    return planKafka({ topics: loads, redisPerSecond }, this.#options.scale, this.#options.assumptions);
  }
}

/** Operations a second of whoever follows a pointer: routers that of the policy, of which they report, workers that of the catalogue. */
function storeRate({ routers, workers }: { routers: number; workers: number }): number {
  return routers * (1_000 / POLL_MS + 1_000 / REPORT_EVERY_MS) + workers * (1_000 / POLL_MS);
}

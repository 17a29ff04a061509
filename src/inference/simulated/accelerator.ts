import type { Accelerator } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { RandomSource } from '../../ports/random.ts';
import type { ModelRepository } from '../repository/open-repository.ts';
import type { StandIns } from './item-traits.ts';
import type { ServiceProfile } from './profiles.ts';
import { SimulatedModel } from './simulated-model.ts';

export interface SimulatedDependencies {
  repository: ModelRepository;
  clock: Clock;
  /** Its stream `service-time` draws the jitter. */
  random: RandomSource;
  /** Factor on the service times in a memory domain: a device that is slower than its profile says, and than it is expected to be. */
  slowdown?: (memory: string) => number;
  /** Where no `inner` computes them: made from each candidate's bytes, or the same for all, which takes no time. Default `from-bytes`. */
  standIns?: StandIns;
  /** Computes real scores; without it scores are stand-ins made from the candidates' bytes. Closed with this accelerator. */
  inner?: Accelerator;
}

/**
 * A device that is not there: service times come from a profile, scores from `inner` or from a hash of the candidates. Like a
 * device it runs one batch at a time. `capabilities.simulated` says so, and must be shown wherever its results are.
 */
export function createSimulatedAccelerator(
  dependencies: SimulatedDependencies,
  profile: ServiceProfile,
): Accelerator {
  const { repository, clock, inner, slowdown = () => 1, standIns = 'from-bytes' } = dependencies;
  const random = dependencies.random.stream('service-time');
  /** The device works one batch after another. */
  let tail: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = tail.then(work);
    tail = result.catch(() => undefined);
    return result;
  };
  return {
    capabilities: {
      backend: 'simulated',
      simulated: true,
      kernels: Object.keys(profile.kernels),
      memories: Object.keys(profile.memories),
      datatypes: ['FP32', 'INT64'],
    },
    failed: inner?.failed ?? new Promise(() => undefined),
    async load(family, version, options) {
      const wanted = repository.version(family, version);
      const tables = await repository.itemTables(wanted);
      const innerModel = await inner?.load(family, version, options);
      return new SimulatedModel({
        clock,
        random,
        profile,
        slowdown,
        inTurn,
        standIns,
        version: wanted,
        tables,
        inner: innerModel,
      });
    },
    async close() {
      await tail;
      await inner?.close();
    },
  };
}

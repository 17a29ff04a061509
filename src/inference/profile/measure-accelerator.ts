import { arch, availableParallelism, cpus } from 'node:os';
import { env } from 'onnxruntime-node';
import type { AcceleratorProfile, FailedVersion, VersionProfile } from '../../core/profile/profile.ts';
import type { Accelerator } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { RandomSource } from '../../ports/random.ts';
import type { ModelVersion } from '../repository/model-version.ts';
import type { ModelRepository } from '../repository/open-repository.ts';
import { ItemMaker } from './made-item.ts';
import { measureVersion } from './measure-version.ts';

export interface AcceleratorMeasuring {
  /** Class of the fleet that it stands for. */
  readonly name: string;
  readonly accelerator: Accelerator;
  readonly repository: ModelRepository;
  readonly versions: readonly ModelVersion[];
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly seed: number;
  /** For each version. */
  readonly measureMs: number;
  onVersion(version: ModelVersion): void;
}

/** Measures versions of models one after another. One that cannot be measured is listed with its reason, and the others go on. */
export async function measureAccelerator(measuring: AcceleratorMeasuring): Promise<AcceleratorProfile> {
  const versions: VersionProfile[] = [];
  const failed: FailedVersion[] = [];
  for (const version of measuring.versions) {
    measuring.onVersion(version);
    try {
      versions.push(await measureOne(measuring, version));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      failed.push({ family: version.family, version: version.version, reason });
    }
  }
  const { backend, simulated } = measuring.accelerator.capabilities;
  return {
    format: 1,
    ...{ accelerator: measuring.name, backend, simulated },
    machine: `${cpus()[0]?.model.trim() ?? arch()} × ${availableParallelism()}`,
    software: `Node ${process.versions.node}, onnxruntime ${env.versions.node ?? 'unknown'}`,
    seed: measuring.seed,
    ...{ versions, failed },
  };
}

async function measureOne(
  { accelerator, repository, clock, random, measureMs }: AcceleratorMeasuring,
  version: ModelVersion,
): Promise<VersionProfile> {
  const golden = await repository.readGolden(version);
  const model = await accelerator.load(version.family, version.version);
  try {
    const items = new ItemMaker(version, golden, random.stream(`${version.family}@${version.version}`));
    const { capabilities } = accelerator;
    return await measureVersion({ version, model, capabilities, items, clock, measureMs });
  } finally {
    await model.unload();
  }
}

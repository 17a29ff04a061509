import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ToyFiles, toyFiles, writeVersion } from '../inference/toy-model.ts';
import { millrace, type Ran } from './cli.fixture.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** A fleet of one class, `cpu`, with what the CPU backends have. */
export const CPU_FLEET = `apiVersion: millrace/v1
kind: Fleet
name: of-a-test
accelerators:
  cpu:
    kernels: [dense, sparse]
    memories: [host]
    pools: [{pool: cpu, capacityClass: dedicated}]
  gpu-a100:
    kernels: [dense, sparse, attention, bias-fused]
    memories: [hbm, l2, host]
    pools: [{pool: a100, capacityClass: dedicated}]
`;

export interface ProfiledModels {
  /** `millrace profile <args>` on these models and that fleet, measured no longer than it must. */
  profile(...args: readonly string[]): Promise<Ran>;
  path(name: string): string;
  write(name: string, text: string): string;
  read(name: string): string;
  /** What lies in the folder beside the models and the fleet. */
  written(): string[];
  /** cost.json of a version. */
  cost(version: string): Record<string, unknown>;
  models: string;
}

/** A folder with versions 1 and 2 of the toy, and a fleet. */
export async function profiledModels(
  change: (files: ToyFiles) => void = () => undefined,
): Promise<ProfiledModels> {
  const folder = temporaryFolder();
  const models = folder.path('models');
  mkdirSync(models);
  for (const version of [1, 2]) {
    const files = toyFiles(version, version === 1 ? 'baseline' : 'enhanced');
    change(files);
    await writeVersion(models, files);
  }
  const fleet = folder.write('fleet.yaml', CPU_FLEET);
  const environment = {
    ...{ MILLRACE_MODELS: models, MILLRACE_FLEET: fleet, MILLRACE_WORKER_BACKEND: 'onnx-cpu' },
    MILLRACE_LOG_LEVEL: 'silent',
  };
  const given = ['fleet.yaml', 'models'];
  return {
    ...folder,
    models,
    profile: (...args) =>
      millrace(['profile', ...(args[0] === 'refit' ? args : ['--measure-time', '1ms', ...args])], {
        environment,
      }),
    written: () =>
      readdirSync(join(models, '..'))
        .filter((name) => !given.includes(name))
        .sort(),
    cost: (version) => JSON.parse(readFileSync(join(models, 'toy', version, 'cost.json'), 'utf8')),
  };
}

import { rm } from 'node:fs/promises';
import type { Environment } from '../config/load-settings.ts';
import { MillraceError } from '../core/errors.ts';
import { findDocker, stopDockerStack } from '../local-stack/docker-stack.ts';
import { composeFilePath } from '../local-stack/find-stack.ts';
import { STACK_VARIABLES } from '../local-stack/named-stack.ts';
import { endProcess } from '../local-stack/process-identity.ts';
import { readStackState, removeStackState } from './stack-state.ts';

export interface Downed {
  /** Whether a stack was up. */
  ended: boolean;
  /** Variables that a shell may still have of it; none of a stack of somebody else's that the environment names. */
  unset: string[];
}

/** Ends what `up` started, and removes its data. */
export async function stackDown(
  file: string,
  { environment, report }: { environment: Environment; report(line: string): void },
): Promise<Downed> {
  const state = await readStackState(file);
  if (state === undefined) return { ended: false, unset: [] };
  report(`ending ${[state.project ?? [], state.processes.map(({ name }) => name)].flat(2).join(', ')}`);
  await Promise.all(state.processes.map(endProcess));
  if (state.dir !== undefined) await rm(state.dir, { recursive: true, force: true });
  if (state.project !== undefined) {
    const docker = await findDocker(environment);
    if (docker === undefined) {
      throw new MillraceError(
        'STACK_UNAVAILABLE',
        `no Docker engine answers, and the stack is its project ${state.project}`,
      );
    }
    await stopDockerStack({ docker, composeFile: composeFilePath(), environment }, state.project);
  }
  await removeStackState(file);
  const unset = STACK_VARIABLES.filter((name) => {
    const value = environment[name] ?? '';
    return value === '' || value === state.environment[name];
  });
  return { ended: true, unset };
}

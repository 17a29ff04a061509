import { existsSync } from 'node:fs';
import { MillraceError } from '../core/errors.ts';
import { findDocker, startDockerStackAgain } from '../local-stack/docker-stack.ts';
import { composeFilePath } from '../local-stack/find-stack.ts';
import type { ServiceAnswer } from '../local-stack/probe-stack.ts';
import { commandLineOf, isAlive } from '../local-stack/process-identity.ts';
import { restartServices, type ServiceToStart } from '../local-stack/restart-services.ts';
import { removeStackState, type StackState, writeStackState } from './stack-state.ts';

const FRESH =
  'millrace stack down ends what is left of the stack with its data; the next `up` starts a fresh one';

/**
 * Starts again what has died of a stack, on the same ports and folders: Kafka and the registry with their data, Redis empty. What answers is not
 * touched. undefined where nothing is left, neither a process nor data.
 * @throws MillraceError STACK_UNAVAILABLE which names the part that cannot be started again
 */
export async function repairStack(
  file: string,
  state: StackState,
  answers: readonly ServiceAnswer[],
  report: (line: string) => void,
): Promise<StackState | undefined> {
  if (state.project !== undefined) return repairContainers(state, state.project, report);
  const running = await Promise.all(state.processes.map(isAlive));
  if (!running.includes(true) && (state.dir === undefined || !existsSync(state.dir)) && allSilent(answers)) {
    report('nothing is left of the stack that was up, data included: a new one is started');
    await removeStackState(file);
    return undefined;
  }
  const dead = await servicesToStart(state, answers);
  report(`starting again what is down of the stack: ${dead.map(({ name }) => name).join(', ')}`);
  const { pids, failures } = await restartServices(dead, report);
  const processes = await Promise.all(
    state.processes.map(async (each) => {
      const pid = pids.get(each.name);
      if (pid === undefined) return each;
      return { ...each, pid, commandLine: (await commandLineOf(pid)) ?? each.commandLine };
    }),
  );
  const repaired = { ...state, processes };
  await writeStackState(file, repaired);
  const failed = failures[0];
  if (failed !== undefined) throw cannotStart(failed.name, failed.error);
  return repaired;
}

function allSilent(answers: readonly ServiceAnswer[]): boolean {
  return answers.every(({ answers: yes }) => !yes);
}

async function servicesToStart(
  state: StackState,
  answers: readonly ServiceAnswer[],
): Promise<ServiceToStart[]> {
  const named = nameBrokers(answers).filter(({ answers: yes }) => !yes);
  return Promise.all(
    named.map(async ({ name, address }) => {
      const known = state.processes.find((each) => each.name === name);
      if (known?.launch === undefined) throw cannotStart(name, 'how it was started is not recorded');
      if (await isAlive(known)) throw cannotStart(name, `it runs (pid ${known.pid}), and does not answer`);
      if (!existsSync(known.launch.workingDirectory))
        throw cannotStart(name, `its folder ${known.launch.workingDirectory} is gone`);
      return { name, address, launch: known.launch };
    }),
  );
}

/** The answers with the names that the processes have: brokers are numbered from 1. */
function nameBrokers(answers: readonly ServiceAnswer[]): (ServiceAnswer & { name: string })[] {
  let brokers = 0;
  return answers.map((each) => {
    if (each.service !== 'kafka') return { ...each, name: each.service };
    brokers += 1;
    return { ...each, name: `kafka-${brokers}` };
  });
}

function cannotStart(name: string, why: unknown): MillraceError {
  const text = why instanceof Error ? why.message : String(why);
  return new MillraceError('STACK_UNAVAILABLE', `${name} cannot be started again: ${text}`, {
    advice: FRESH,
    cause: why,
  });
}

async function repairContainers(
  state: StackState,
  project: string,
  report: (line: string) => void,
): Promise<StackState> {
  const docker = await findDocker(process.env);
  if (docker === undefined) {
    throw new MillraceError(
      'STACK_UNAVAILABLE',
      `no Docker engine answers, and the stack is its project ${project}`,
      { advice: 'Start Docker' },
    );
  }
  report(`starting again what is down of ${project}`);
  const options = { docker, composeFile: composeFilePath(), environment: process.env };
  await startDockerStackAgain(options, project, state.environment).catch((error: unknown) => {
    throw cannotStart(project, error);
  });
  return state;
}

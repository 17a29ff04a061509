import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Environment } from '../config/load-settings.ts';
import { MillraceError } from '../core/errors.ts';
import { withoutCredentials } from '../core/without-credentials.ts';
import { findStack } from '../local-stack/find-stack.ts';
import { namedStack, STACK_VARIABLES } from '../local-stack/named-stack.ts';
import { isLoopback, probeStack, type ServiceAnswer } from '../local-stack/probe-stack.ts';
import { commandLineOf } from '../local-stack/process-identity.ts';
import type { Stack } from '../local-stack/stack.ts';
import { repairStack } from './stack-repair.ts';
import { readStackState, type StackState, writeStackState } from './stack-state.ts';

export interface UpOptions {
  brokers: 1 | 3;
  environment: Environment;
  report(line: string): void;
}

/**
 * A stack whose services answer: the one that the environment names; else the one that is up, with what has died of it started again; else a
 * new one. Nothing that answers is ever ended, and nothing is touched before the environment has been looked at.
 */
export async function stackUp(file: string, options: UpOptions): Promise<StackState> {
  const recorded = await readStackState(file);
  const named = await servicesNamed(options, recorded);
  if (named !== undefined) return named;
  const kept = recorded === undefined ? undefined : await useRecorded(file, recorded, options);
  return kept ?? startNew(file, options);
}

export function allAnswer(answers: readonly ServiceAnswer[]): boolean {
  return answers.length > 0 && answers.every(({ answers: yes }) => yes);
}

const PROBES = 5;
const PROBE_PAUSE_MS = 500;

/** A busy machine answers late: what is silent is asked again for a while. */
async function probePatiently(environment: StackState['environment']): Promise<ServiceAnswer[]> {
  for (let probe = 1; ; probe += 1) {
    const answers = await probeStack(environment);
    if (allAnswer(answers) || probe === PROBES) return answers;
    await sleep(PROBE_PAUSE_MS);
  }
}

/** The services that the environment names, where they are not those of the stack that is up, and answer. */
async function servicesNamed(
  { environment, report }: UpOptions,
  recorded: StackState | undefined,
): Promise<StackState | undefined> {
  const isOurs = STACK_VARIABLES.every((name) => {
    const value = environment[name] ?? '';
    return value === '' || value === recorded?.environment[name];
  });
  if (isOurs) return undefined;
  const named = namedStack(environment);
  if (named === undefined) return undefined;
  const answers = await probePatiently(named.environment);
  if (allAnswer(answers)) {
    report('the environment names services that answer: they are used as they are');
    return { environment: { ...named.environment }, processes: [] };
  }
  const silent = answers.filter(({ answers: yes }) => !yes);
  if (silent.length < answers.length || !answers.every(({ address }) => isLoopback(address)))
    throw silentService(silent);
  report(
    `the environment names a stack of this machine that is down (${silent.map(shownAddress).join(', ')})`,
  );
  return undefined;
}

function silentService(silent: readonly ServiceAnswer[]): MillraceError {
  const variables = [...new Set(silent.map(({ variable }) => variable))];
  const services = silent.map((each) => `${each.service} at ${shownAddress(each)}`);
  return new MillraceError(
    'STACK_UNAVAILABLE',
    `the environment names services that do not answer: ${services.join(', ')} (${variables.join(', ')})`,
    {
      advice: `Start what is down there, or for a stack on this machine: unset ${STACK_VARIABLES.join(' ')}`,
    },
  );
}

function shownAddress({ address }: ServiceAnswer): string {
  return withoutCredentials(address);
}

/** The stack that is up, whole; undefined where nothing is left of it. */
async function useRecorded(
  file: string,
  recorded: StackState,
  { brokers, report }: UpOptions,
): Promise<StackState | undefined> {
  const answers = await probePatiently(recorded.environment);
  const count = answers.filter(({ service }) => service === 'kafka').length;
  if (count !== brokers) {
    throw new MillraceError('STACK_UNAVAILABLE', 'a stack with another number of brokers is up', {
      value: count,
      allowed: String(brokers),
      advice: 'Run `millrace stack down` first',
    });
  }
  if (!allAnswer(answers)) return repairStack(file, recorded, answers, report);
  report('a stack is up already, and used as it is: `millrace stack down` ends it for all who use it');
  return recorded;
}

async function startNew(file: string, { brokers, environment, report }: UpOptions): Promise<StackState> {
  const unnamed = Object.fromEntries(
    Object.entries(environment).filter(([name]) => !STACK_VARIABLES.some((variable) => variable === name)),
  );
  const dir = await mkdtemp(join(tmpdir(), 'millrace-up-'));
  const options = { brokers, dir, lifetime: 'outlives-parent', onProgress: report } as const;
  const started = await findStack(unnamed, options).catch(async (error: unknown) => {
    await rm(dir, { recursive: true, force: true });
    throw error;
  });
  const state = await describeStack(started);
  if (started.dir === undefined) await rm(dir, { recursive: true, force: true });
  await writeStackState(file, state).catch(async (error: unknown) => {
    // Nobody could end what nothing tells of.
    await started.stop();
    await rm(dir, { recursive: true, force: true });
    throw error;
  });
  return state;
}

async function describeStack(stack: Stack): Promise<StackState> {
  const processes = await Promise.all(
    Object.entries(stack.pids).map(async ([name, pid]) => {
      const launch = stack.launches[name];
      const commandLine = (await commandLineOf(pid)) ?? '';
      return {
        name,
        pid,
        commandLine,
        ...(launch === undefined ? {} : { launch: { ...launch, arguments: [...launch.arguments] } }),
      };
    }),
  );
  const ended = processes.find((each) => each.commandLine === '');
  if (ended !== undefined)
    throw new MillraceError('STACK_UNAVAILABLE', `${ended.name} ended right after it had answered`);
  return {
    environment: { ...stack.environment },
    processes,
    ...(stack.dir === undefined ? {} : { dir: stack.dir }),
    ...(stack.project === undefined ? {} : { project: stack.project }),
  };
}

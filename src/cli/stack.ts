import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { MillraceError } from '../core/errors.ts';
import { cacheFolder } from '../local-stack/artifacts.ts';
import { findDocker, stopDockerStack } from '../local-stack/docker-stack.ts';
import { withFileLock } from '../local-stack/file-lock.ts';
import { composeFilePath, findStack } from '../local-stack/find-stack.ts';
import { probeStack, type ServiceAnswer } from '../local-stack/probe-stack.ts';
import { commandLineOf, endProcess } from '../local-stack/process-identity.ts';
import type { Stack } from '../local-stack/stack.ts';
import { readStackState, removeStackState, type StackState, writeStackState } from './stack-state.ts';

/** `millrace stack up|down|status`: Kafka, a schema registry and Redis on loopback that outlive the command. */
export function stackCommand(): Command {
  const stack = new Command('stack').description('Kafka, a schema registry and Redis on this machine');
  const json = ['--json', 'print one JSON object instead of text'] as const;
  stack
    .command('up')
    .description('start them unless they are up, and print the environment to use them')
    .addOption(new Option('--brokers <count>', 'Kafka brokers').choices(['1', '3']).default('1'))
    .option(...json)
    .addHelpText(
      'after',
      `
Takes what the environment names, else Docker, else Java and Maven. Data lies in a temporary folder until \`down\`. One stack is up at a time for all who
share the folder of MILLRACE_STACK_CACHE (~/.cache/millrace unless it is set); another folder has a stack of its own.

Examples:
  eval "$(millrace stack up)"
  millrace stack up --json | jq .environment`,
    )
    .action((options: { brokers: '1' | '3'; json?: true }) =>
      locked(async (file) => {
        const state = await up(file, options.brokers === '3' ? 3 : 1);
        console.log(options.json ? JSON.stringify(state) : exportLines(state.environment));
      }),
    );
  stack
    .command('down')
    .description('end what `up` started, and remove its data')
    .option(...json)
    .addHelpText('after', '\nExample:\n  millrace stack down')
    .action((options: { json?: true }) =>
      locked(async (file) => {
        const ended = await down(file);
        const text = ended ? 'ended' : 'no stack is up';
        console.log(options.json ? JSON.stringify({ ended }) : text);
      }),
    );
  stack
    .command('status')
    .description('say which services answer; exit code 1 unless all do')
    .option(...json)
    .addHelpText('after', '\nExample:\n  millrace stack status --json')
    .action(async (options: { json?: true }) => {
      const state = await readStackState(stateFile());
      const answers = state === undefined ? [] : await probeStack(state.environment);
      const isUp = allAnswer(answers);
      const text = options.json
        ? JSON.stringify({ up: isUp, services: answers, ...state })
        : statusLines(answers);
      console.log(text);
      if (!isUp) process.exitCode = 1;
    });
  return stack;
}

function stateFile(): string {
  return join(cacheFolder(process.env), 'run', 'stack.json');
}

/** One `up` or `down` at a time. */
function locked(action: (file: string) => Promise<void>): Promise<void> {
  const file = stateFile();
  return withFileLock(`${file}.lock`, () => action(file));
}

async function up(file: string, brokers: 1 | 3): Promise<StackState> {
  const current = await readStackState(file);
  if (current !== undefined) {
    const answers = await probeStack(current.environment);
    const count = answers.filter(({ service }) => service === 'kafka').length;
    if (allAnswer(answers) && count === brokers) {
      report('a stack is up already, and used as it is: `millrace stack down` ends it for all who use it');
      return current;
    }
    if (allAnswer(answers)) {
      throw new MillraceError('STACK_UNAVAILABLE', 'a stack with another number of brokers is up', {
        value: count,
        allowed: String(brokers),
        advice: 'Run `millrace stack down` first',
      });
    }
    report('the stack that was up does not answer: ending what is left of it');
    await down(file);
  }
  const dir = await mkdtemp(join(tmpdir(), 'millrace-up-'));
  const options = { brokers, dir, lifetime: 'outlives-parent', onProgress: report } as const;
  const started = await findStack(process.env, options).catch(async (error: unknown) => {
    await rm(dir, { recursive: true, force: true });
    throw error;
  });
  const state = await describeStack(started);
  if (started.dir === undefined) await rm(dir, { recursive: true, force: true });
  if (started.source !== 'environment') await writeStackState(file, state);
  return state;
}

async function down(file: string): Promise<boolean> {
  const state = await readStackState(file);
  if (state === undefined) return false;
  await Promise.all(state.processes.map(endProcess));
  if (state.dir !== undefined) await rm(state.dir, { recursive: true, force: true });
  if (state.project !== undefined) {
    const docker = await findDocker(process.env);
    if (docker === undefined) {
      throw new MillraceError(
        'STACK_UNAVAILABLE',
        `no Docker engine answers, and the stack is its project ${state.project}`,
      );
    }
    await stopDockerStack(
      { docker, composeFile: composeFilePath(), environment: process.env },
      state.project,
    );
  }
  await removeStackState(file);
  return true;
}

async function describeStack(stack: Stack): Promise<StackState> {
  const processes = await Promise.all(
    Object.entries(stack.pids).map(async ([name, pid]) => {
      return { name, pid, commandLine: (await commandLineOf(pid)) ?? '' };
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

function allAnswer(answers: readonly ServiceAnswer[]): boolean {
  return answers.length > 0 && answers.every(({ answers: yes }) => yes);
}

function statusLines(answers: readonly ServiceAnswer[]): string {
  if (answers.length === 0) return 'no stack is up';
  return answers
    .map(
      ({ service, address, answers: yes }) =>
        `${service.padEnd(8)} ${yes ? 'answers' : 'silent '} ${address}`,
    )
    .join('\n');
}

function exportLines(environment: Readonly<Record<string, string>>): string {
  return Object.entries(environment)
    .map(([name, value]) => `export ${name}='${value}'`)
    .join('\n');
}

/** Progress goes to standard error, so that standard output can be evaluated by a shell. */
function report(line: string): void {
  console.error(line);
}

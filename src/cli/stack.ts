import { join } from 'node:path';
import { Command, Option } from 'commander';
import { cacheFolder } from '../local-stack/artifacts.ts';
import { withFileLock } from '../local-stack/file-lock.ts';
import { probeStack, type ServiceAnswer } from '../local-stack/probe-stack.ts';
import { stackDown } from './stack-down.ts';
import { readStackState, type StackState } from './stack-state.ts';
import { allAnswer, stackUp } from './stack-up.ts';

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
        const state = await stackUp(file, {
          brokers: options.brokers === '3' ? 3 : 1,
          environment: process.env,
          report,
        });
        console.log(options.json ? JSON.stringify(shown(state)) : exportLines(state.environment));
      }),
    );
  stack
    .command('down')
    .description('end what `up` started, remove its data, and print how to unset its addresses')
    .option(...json)
    .addHelpText(
      'after',
      `
Examples:
  millrace stack down
  eval "$(millrace stack down)"     this shell forgets the addresses as well`,
    )
    .action((options: { json?: true }) =>
      locked(async (file) => {
        const { ended, unset } = await stackDown(file, { environment: process.env, report });
        if (options.json) {
          console.log(JSON.stringify({ ended, unset }));
          return;
        }
        report(ended ? 'ended' : 'no stack is up');
        if (unset.length > 0) console.log(`unset ${unset.join(' ')}`);
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
        ? JSON.stringify({ up: isUp, services: answers, ...(state && shown(state)) })
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

/** The state without what only the next `up` needs. */
function shown({ processes, ...rest }: StackState): object {
  return { ...rest, processes: processes.map(({ launch: _, ...shownOnes }) => shownOnes) };
}

/** Progress goes to standard error, so that standard output can be evaluated by a shell. */
function report(line: string): void {
  console.error(line);
}

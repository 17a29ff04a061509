import { Command } from 'commander';
import { loadSettings } from '../config/load-settings.ts';
import { seededRandom } from '../core/random/seeded-random.ts';
import type { CliContext } from './context.ts';
import { duration, positiveNumber, seed } from './flags.ts';
import { runEmbedded } from './run-embedded.ts';

interface StartFlags {
  duration?: number;
  rate: number;
  seed: number;
  trace?: string;
  policy?: string;
  deadline?: number;
  topology?: string;
  json: boolean;
}

export function startCommand(context: CliContext): Command {
  return new Command('start')
    .description('Run the whole pipeline in this process: no Kafka, no Redis, a real model, live traffic')
    .option('--duration <time>', 'end after this long, such as 15s (default: until Ctrl-C)', duration)
    .option('--rate <requests>', 'mean rate of the traffic, requests per second', positiveNumber, 100)
    .option('--seed <n>', 'seed of the traffic', seed, 1)
    .option(
      '--trace <file>',
      'replay a trace (CSV of time stamp, context tokens, generated tokens) instead of generated traffic',
    )
    .option('--policy <file>', 'policy to run (default: the packaged starter policy)')
    .option('--deadline <time>', 'deadline of each request (default: the SLA of the model family)', duration)
    .option('--topology <kind>', 'split or fused')
    .option(
      '--json',
      'print the ledger as one line of JSON at the end; progress goes to standard error',
      false,
    )
    .addHelpText(
      'after',
      `
Exit code 0 when the books balance at the end: every request that came in got exactly one outcome.

Examples:
  millrace start                          live table until Ctrl-C
  millrace start --duration 15s --json    15 seconds, then the ledger
  millrace start --rate 300 --seed 7`,
    )
    .action(async (flags: StartFlags) => {
      const overrides = { policy: flags.policy, topology: flags.topology };
      const { settings } = loadSettings(context.environment, overrides);
      context.exitCode = await runEmbedded(context, settings, {
        random: seededRandom(flags.seed),
        ratePerSecond: flags.rate,
        durationMs: flags.duration ?? Number.POSITIVE_INFINITY,
        deadlineMs: flags.deadline,
        trace: flags.trace,
        json: flags.json,
      });
    });
}

import { Command } from 'commander';
import { systemClock } from '../adapters/system/clock.ts';
import { loadSettings } from '../config/load-settings.ts';
import { seededRandom } from '../core/random/seeded-random.ts';
import { parseDuration } from './duration.ts';
import { runEmbedded } from './run-embedded.ts';

export function startCommand(): Command {
  return new Command('start')
    .description('Run the whole pipeline in this process: no Kafka, no Redis, a real model, live traffic')
    .option('--duration <time>', 'end after this long, such as 15s (default: until Ctrl-C)')
    .option('--rate <requests>', 'mean rate of the traffic, requests per second', Number, 100)
    .option('--seed <n>', 'seed of the traffic', Number, 1)
    .option(
      '--trace <file>',
      'replay a trace (CSV of time stamp, context tokens, generated tokens) instead of generated traffic',
    )
    .option('--policy <file>', 'policy to run (default: the packaged starter policy)')
    .option('--deadline <time>', 'deadline of each request (default: the SLA of the model family)')
    .option('--topology <kind>', 'split or fused')
    .option('--json', 'print the ledger as JSON at the end, and nothing else', false)
    .addHelpText(
      'after',
      '\nExamples:\n  millrace start                          live table until Ctrl-C\n  millrace start --duration 15s --json    15 seconds, then the ledger\n  millrace start --rate 300 --seed 7',
    )
    .action(async (flags: StartFlags) => {
      const { settings } = loadSettings(process.env, { policy: flags.policy, topology: flags.topology });
      const clock = systemClock();
      process.exitCode = await runEmbedded(settings, {
        clock,
        random: seededRandom(flags.seed),
        ratePerSecond: flags.rate,
        durationMs: flags.duration === undefined ? Number.POSITIVE_INFINITY : parseDuration(flags.duration),
        deadlineMs: flags.deadline === undefined ? undefined : parseDuration(flags.deadline),
        trace: flags.trace,
        json: flags.json,
      });
    });
}

interface StartFlags {
  duration?: string;
  rate: number;
  seed: number;
  trace?: string;
  policy?: string;
  deadline?: string;
  topology?: string;
  json: boolean;
}

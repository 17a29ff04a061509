import { Command } from 'commander';
import { failWith } from './fail.ts';
import { replayCommand } from './replay.ts';
import { stackCommand } from './stack.ts';
import { startCommand } from './start.ts';
import { upCommand } from './up.ts';

export function program(): Command {
  return new Command('millrace')
    .description('Event-streaming pipeline for recommendation inference')
    .option('--verbose', 'show stack traces of errors', false)
    .addHelpText(
      'after',
      '\nFirst steps:\n  millrace start                    the whole pipeline in this process\n  millrace stack up                 a real Kafka, schema registry and Redis on this machine',
    )
    .addCommand(startCommand())
    .addCommand(stackCommand())
    .addCommand(upCommand())
    .addCommand(replayCommand());
}

/** Runs one command; errors are told in words, with a stack trace only where asked for. */
export async function runCli(args: readonly string[]): Promise<void> {
  const command = program();
  try {
    await command.parseAsync(args, { from: 'user' });
  } catch (error) {
    failWith(error, command.opts<{ verbose: boolean }>().verbose);
  }
}

if (import.meta.main) await runCli(process.argv.slice(2));

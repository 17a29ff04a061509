import { CommanderError } from 'commander';
import { fileError } from '../config/user-file.ts';
import { type CliContext, processContext } from './context.ts';
import { failWith } from './fail.ts';
import { program } from './program.ts';
import { refuseHelpOnUnknown } from './unknown-command.ts';

/** Runs one command. Errors are told in words, with a stack trace only where asked for; the exit code is in the context. */
export async function runCommand(args: readonly string[], context: CliContext): Promise<void> {
  const command = program(context);
  try {
    refuseHelpOnUnknown(command, args);
    await command.parseAsync(args, { from: 'user' });
  } catch (error) {
    // Commander has told its own errors already; help and version end with one of exit code 0.
    if (error instanceof CommanderError) context.exitCode = error.exitCode === 0 ? 0 : 2;
    else failWith(context, error, command.opts<{ verbose: boolean }>().verbose);
  }
}

const LEAVE_MS = 500;

/** Runs one command as this process. */
export async function runCli(args: readonly string[]): Promise<void> {
  // `millrace results | head` closes the pipe: that is no fault.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(
      `millrace: ${fileError('the output cannot be written', 'standard output', error, 'written', 'Make room, or write to another disk').message}\n`,
    );
    process.exit(1);
  });
  // What is told of progress and of faults is for whoever reads it: where nobody does, the command and its exit code are the same.
  process.stderr.on('error', () => undefined);
  const context = processContext();
  // In a timer's callback, or a promise that nobody waits for: told like what a command throws.
  process.on('uncaughtException', (error) => {
    failWith(context, error, args.includes('--verbose'));
    process.exit(context.exitCode);
  });
  await runCommand(args, context);
  if (context.exitCode === 0) return;
  process.exitCode = context.exitCode;
  // What a failed start left open must not keep the process; output gets the time to leave.
  setTimeout(() => process.exit(context.exitCode), LEAVE_MS).unref();
}

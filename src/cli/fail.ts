import { MillraceError } from '../core/errors.ts';
import { DocumentError, describeProblem } from '../core/policy/problem.ts';
import type { CliContext } from './context.ts';

/** Tells what went wrong on standard error, and sets the exit code: 2 for what the user can correct, 1 for the rest. */
export function failWith(context: CliContext, error: unknown, verbose: boolean): void {
  context.exitCode = isCorrectable(error) ? 2 : 1;
  context.stderr.write(`millrace: ${describe(error)}\n`);
  if (!(error instanceof Error) || error.stack === undefined) return;
  if (verbose) context.stderr.write(`${error.stack}\n${causes(error)}`);
  else if (!(error instanceof MillraceError))
    context.stderr.write('This was not foreseen: with --verbose it comes with its stack trace.\n');
}

function isCorrectable(error: unknown): boolean {
  return error instanceof MillraceError && !error.retryable && error.code !== 'CLOSED';
}

function describe(error: unknown): string {
  if (!(error instanceof DocumentError) || error.problems.length < 2)
    return error instanceof Error ? error.message : String(error);
  const lines = error.problems.map((problem) => `  ${problem.severity}: ${describeProblem(problem)}`);
  return [`${error.problems.length} problems`, ...lines].join('\n');
}

function causes(error: Error): string {
  const lines: string[] = [];
  for (let cause = error.cause; cause !== undefined; cause = cause instanceof Error ? cause.cause : undefined)
    lines.push(`Caused by ${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}\n`);
  return lines.join('');
}

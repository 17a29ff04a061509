import { MillraceError } from '../core/errors.ts';

/** What went wrong, on standard error; exit code 2 for what the user can correct, 1 for the rest. */
export function failWith(error: unknown, verbose: boolean): void {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`millrace: ${message}\n`);
  if (verbose && error instanceof Error && error.stack !== undefined)
    process.stderr.write(`${error.stack}\n`);
  process.exitCode = error instanceof MillraceError && !error.retryable ? 2 : 1;
}

import { type ErrorCode, MillraceError } from '../core/errors.ts';

/** A file that a person named for something else than it holds, or wrote by hand and has a slip in. */
export function notJson(
  code: ErrorCode,
  { file, text, cause }: { file: string; text: string; cause: unknown },
  { allowed, advice }: { allowed: string; advice: string },
): MillraceError {
  const reason = (cause instanceof Error ? cause.message : String(cause)).replaceAll(/\s+/g, ' ');
  const isPolicy = /^kind:\s*RoutingPolicy\b/m.test(text);
  return new MillraceError(code, `${file} is not JSON: ${reason}`, {
    allowed,
    advice: isPolicy ? 'It is a policy: see millrace policy --help for what takes it' : advice,
    cause,
  });
}

import { cutText } from '../../core/cut-text.ts';
import { withoutCredentials } from '../../core/without-credentials.ts';

/** Of a text in a log line. Longer ones are payloads, pages and graphs that somebody quoted. */
const LENGTH_MAX = 8_192;
/** How many causes of causes are told. */
const CAUSES_MAX = 5;

export interface LoggedError {
  readonly type: string;
  readonly code?: string | number;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: LoggedError;
}

/** What a log line says of a text. Cut last: half of a password would not be known for one. */
export function loggedText(text: string): string {
  return cutText(withoutCredentials(text), LENGTH_MAX);
}

/**
 * What a log line says of an error: these fields and no others. Libraries hang whole requests on their errors, with addresses, headers and
 * bodies. No credentials of a URL are in it.
 */
export function loggedError(error: unknown, causes = CAUSES_MAX): LoggedError | string {
  if (!(error instanceof Error)) return loggedText(String(error));
  return errorFields(error, causes);
}

function errorFields(error: Error, causes: number): LoggedError {
  const code: unknown = 'code' in error ? error.code : undefined;
  return {
    type: error.name,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    message: loggedText(error.message),
    ...(error.stack === undefined ? {} : { stack: loggedText(error.stack) }),
    ...(error.cause instanceof Error && causes > 0 ? { cause: errorFields(error.cause, causes - 1) } : {}),
  };
}

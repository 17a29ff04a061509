import { withoutCredentials } from '../../core/without-credentials.ts';

/** How many causes of causes are told. */
const CAUSES_MAX = 5;

export interface LoggedError {
  readonly type: string;
  readonly code?: string | number;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: LoggedError;
}

/**
 * What a log line says of an error: these fields and no others. Libraries hang whole requests on their errors, with addresses, headers and
 * bodies. No credentials of a URL are in it.
 */
export function loggedError(error: unknown, causes = CAUSES_MAX): LoggedError | string {
  if (!(error instanceof Error)) return withoutCredentials(String(error));
  return errorFields(error, causes);
}

function errorFields(error: Error, causes: number): LoggedError {
  const code: unknown = 'code' in error ? error.code : undefined;
  return {
    type: error.name,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    message: withoutCredentials(error.message),
    ...(error.stack === undefined ? {} : { stack: withoutCredentials(error.stack) }),
    ...(error.cause instanceof Error && causes > 0 ? { cause: errorFields(error.cause, causes - 1) } : {}),
  };
}

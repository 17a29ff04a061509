/**
 * Every error that millrace reports, as a closed list: what a code means is documented in docs/errors.md,
 * and whether trying again can help is a property of the code, not of who catches it.
 */
export const ERROR_CODES = {
  // a record that cannot be read
  NO_FRAME: { retryable: false },
  EMPTY_VALUE: { retryable: false },
  UNKNOWN_SCHEMA: { retryable: false },
  MALFORMED: { retryable: false },
  TOO_LARGE: { retryable: false },
  POISON: { retryable: false },
  // a request that can be read and is refused
  INVALID_REQUEST: { retryable: false },
  INVALID_TENSOR: { retryable: false },
  NON_FINITE: { retryable: false },
  UNKNOWN_MODEL: { retryable: false },
  UNKNOWN_ITEM: { retryable: false },
  NO_FEATURES: { retryable: false },
  LIMIT_EXCEEDED: { retryable: false },
  OVERLOADED: { retryable: true },
  NO_CAPACITY: { retryable: true },
  NO_TARGET: { retryable: true },
  BUDGET_EXHAUSTED: { retryable: true },
  // policies and control
  INVALID_POLICY: { retryable: false },
  INVALID_COMMAND: { retryable: false },
  STALE_EPOCH: { retryable: false },
  LOG_UNREADABLE: { retryable: true },
  // models
  INVALID_MODEL: { retryable: false },
  MODEL_FAILED: { retryable: true },
  MODEL_UNAVAILABLE: { retryable: true },
  // surroundings
  INVALID_CONFIG: { retryable: false },
  BUS_UNAVAILABLE: { retryable: true },
  STORE_UNAVAILABLE: { retryable: true },
  REGISTRY_UNAVAILABLE: { retryable: true },
  STACK_UNAVAILABLE: { retryable: false },
  CLOSED: { retryable: false },
} as const satisfies Record<string, { retryable: boolean }>;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface ErrorDetail {
  /** The offending value; it is shortened in the message and never holds payload bytes. */
  value?: unknown;
  /** What would have been accepted. */
  allowed?: string;
  /** What whoever reads the message can do about it. */
  advice?: string;
  cause?: unknown;
}

const VALUE_LENGTH_MAX = 80;

/** A value as it may stand in a message: one line, at most 80 characters, bytes only by their length. */
export function shorten(value: unknown): string {
  if (value instanceof Uint8Array) return `${value.byteLength} bytes`;
  const text = typeof value === 'string' ? JSON.stringify(value) : (toJson(value) ?? toText(value));
  return text.length <= VALUE_LENGTH_MAX ? text : `${text.slice(0, VALUE_LENGTH_MAX - 1)}…`;
}

const LISTED_MAX = 20;

/** Names as they may stand in a message: the first 20 of them, and how many more there are. */
export function listNames(names: Iterable<string>, none = 'none'): string {
  const all = [...names];
  if (all.length === 0) return none;
  const listed = all.slice(0, LISTED_MAX).join(', ');
  return all.length > LISTED_MAX ? `${listed} and ${all.length - LISTED_MAX} more` : listed;
}

/** Some values have no text: what has no prototype, and lists that are nested too deep. */
function toText(value: unknown): string {
  try {
    return String(value);
  } catch {
    return `a value of type ${typeof value}`;
  }
}

function toJson(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** `what (got <value>; allowed: <allowed>). <advice>` */
export class MillraceError extends Error {
  readonly code: ErrorCode;
  readonly retryable: boolean;

  constructor(code: ErrorCode, what: string, detail: ErrorDetail = {}) {
    super(describe(what, detail), detail.cause === undefined ? undefined : { cause: detail.cause });
    this.name = 'MillraceError';
    this.code = code;
    this.retryable = ERROR_CODES[code].retryable;
  }
}

function describe(what: string, detail: ErrorDetail): string {
  const got = 'value' in detail ? `got ${shorten(detail.value)}` : '';
  const allowed = detail.allowed === undefined ? '' : `allowed: ${detail.allowed}`;
  const inside = [got, allowed].filter((part) => part !== '').join('; ');
  const sentence = inside === '' ? what : `${what} (${inside})`;
  if (detail.advice === undefined) return sentence;
  // Another error's message, which may be all that was wrong, has its own end.
  return /[.!?…]$/.test(sentence) ? `${sentence} ${detail.advice}` : `${sentence}. ${detail.advice}`;
}

import { type ErrorCode, type ErrorDetail, MillraceError } from '../errors.ts';

/** Why a readable request is refused: a closed code, a sentence for people, and whether the same request can succeed later. */
export interface Rejection {
  status: 'rejected';
  code: ErrorCode;
  message: string;
  retryable: boolean;
}

export function reject(code: ErrorCode, what: string, detail: ErrorDetail): Rejection {
  const { message, retryable } = new MillraceError(code, what, detail);
  return { status: 'rejected', code, message, retryable };
}

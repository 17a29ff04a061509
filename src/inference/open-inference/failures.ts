/** A server's answer that is not what was asked for. */
export class AnswerError extends Error {
  /** @param message may quote the answer, whatever its length */
  constructor(message: string) {
    super(excerpt(message));
  }
}

/** It could not be reached, or cannot compute just now: to be asked again. */
export class Unavailable extends Error {
  /** Whether it was reached, and said so itself. */
  readonly wasAnswered: boolean;

  constructor(message: string, wasAnswered = false) {
    super(excerpt(message));
    this.wasAnswered = wasAnswered;
  }
}

/** fetch puts the reason into the cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

const EXCERPT_ENDS = 150;

/** A server written in Python answers with a traceback, whose last line has the reason. */
export function excerpt(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, ' ');
  if (line.length <= 2 * EXCERPT_ENDS) return line;
  return `${line.slice(0, EXCERPT_ENDS)} … ${line.slice(-EXCERPT_ENDS)}`;
}

import { type ErrorCode, type ErrorDetail, MillraceError, shorten } from '../errors.ts';

/** A place in a document's text; both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** One thing that is wrong, or doubtful, in a policy or a fleet document. */
export interface PolicyProblem {
  /** A document with an error is refused; a warning is only shown. */
  readonly severity: 'error' | 'warning';
  /** Where in the document, such as `tree[2].to.kernel`; empty for the document as a whole. */
  readonly path: string;
  readonly position: Position | undefined;
  readonly what: string;
  readonly value?: unknown;
  readonly allowed?: string;
  readonly advice?: string;
}

/** `tree[2].when, line 9, column 11: what is wrong (got …; allowed: …). What to do` */
export function describeProblem(problem: PolicyProblem): string {
  const place = [
    ...(problem.path === '' ? [] : [problem.path]),
    ...(problem.position === undefined
      ? []
      : [`line ${problem.position.line}, column ${problem.position.column}`]),
  ].join(', ');
  const inside = [
    ...('value' in problem ? [`got ${shorten(problem.value)}`] : []),
    ...(problem.allowed === undefined ? [] : [`allowed: ${problem.allowed}`]),
  ].join('; ');
  return [
    place === '' ? '' : `${place}: `,
    problem.what,
    inside === '' ? '' : ` (${inside})`,
    problem.advice === undefined ? '' : `. ${problem.advice}`,
  ].join('');
}

export type DocumentErrorCode = Extract<ErrorCode, 'INVALID_POLICY' | 'INVALID_CONFIG'>;

/** A document that is refused, with everything that is wrong in it; the message tells the first problem. */
export class DocumentError extends MillraceError {
  readonly problems: readonly PolicyProblem[];

  constructor(code: DocumentErrorCode, problems: readonly PolicyProblem[], detail: ErrorDetail = {}) {
    super(code, summarise(problems), detail);
    this.problems = problems;
  }
}

/** A list of errors longer than this helps nobody, and whoever writes the document chooses its length. */
export const PROBLEMS_MAX = 50;

/** Gathers what is wrong with a document. When there are too many, the document is refused and the rest of it not looked at. */
export class ProblemList {
  readonly found: PolicyProblem[] = [];
  readonly #code: DocumentErrorCode;

  constructor(code: DocumentErrorCode) {
    this.#code = code;
  }

  /** @throws DocumentError with the first 50 problems */
  add(problem: PolicyProblem): void {
    this.found.push(problem);
    if (this.found.length >= PROBLEMS_MAX) throw new DocumentError(this.#code, this.found);
  }
}

function summarise(problems: readonly PolicyProblem[]): string {
  const [first] = problems.filter((problem) => problem.severity === 'error');
  const more = problems.length - 1;
  const text = first === undefined ? 'the document is refused' : describeProblem(first);
  return more > 0 ? `${text} (and ${more} more)` : text;
}

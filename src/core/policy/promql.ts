import { nearestName } from './nearest.ts';
import { FUNCTIONS } from './promql-functions.ts';

/** What Prometheus would not read in a query. */
export interface PromqlProblem {
  /** Index of the character. */
  readonly at: number;
  readonly what: string;
}

/**
 * The first thing in a PromQL query that Prometheus 3 would not parse; undefined where there is none, or where it nests deeper than is looked at.
 * Grammar alone: nothing is said of types, of labels or of whether there are such series. Linear in the length of the query.
 */
export function promqlProblem(query: string): PromqlProblem | undefined {
  try {
    new Parser(tokensOf(query)).whole();
    return undefined;
  } catch (error) {
    if (error instanceof Unparsable) return error.problem;
    throw error;
  }
}

class Unparsable extends Error {
  readonly problem: PromqlProblem | undefined;

  constructor(problem: PromqlProblem | undefined) {
    super(problem?.what);
    this.problem = problem;
  }
}

type Kind = 'number' | 'duration' | 'string' | 'name' | 'sign' | 'end';

interface Token {
  readonly kind: Kind;
  readonly text: string;
  readonly at: number;
}

const SPACE = /(?:\s+|#[^\n]*)/y;
const PATTERNS: readonly (readonly [Kind, RegExp])[] = [
  ['duration', /(?:\d+(?:ms|[smhdwy]))+(?![A-Za-z0-9_.])/y],
  ['number', /(?:0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![A-Za-z0-9_])/y],
  ['string', /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`/y],
  ['name', /[A-Za-z_:][A-Za-z0-9_:]*/y],
  ['sign', /==|!=|=~|!~|>=|<=|[-+*/%^=<>(){}[\],@]/y],
];

function tokensOf(query: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < query.length; ) {
    const space = matchAt(SPACE, query, at);
    if (space !== '') {
      at += space.length;
      continue;
    }
    const token = tokenAt(query, at, tokens);
    tokens.push(token);
    at += token.text.length;
  }
  return [...tokens, { kind: 'end', text: '', at: query.length }];
}

function tokenAt(query: string, at: number, before: readonly Token[]): Token {
  // Within the brackets of a subquery a colon stands alone; elsewhere it is part of a name.
  if (query[at] === ':' && isInRange(before)) return { kind: 'sign', text: ':', at };
  for (const [kind, pattern] of PATTERNS) {
    const text = matchAt(pattern, query, at);
    if (text !== '') return { kind, text, at };
  }
  const what = /["'`]/.test(query[at] ?? '')
    ? 'a text that has no end'
    : 'a character that means nothing here';
  throw new Unparsable({ at, what });
}

function isInRange(before: readonly Token[]): boolean {
  return before.findLast(({ text }) => text === '[' || text === ']')?.text === '[';
}

function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}

const DEPTH_MAX = 64;
const BINARY = new Set([
  '+',
  '-',
  '*',
  '/',
  '%',
  '^',
  '==',
  '!=',
  '>',
  '<',
  '>=',
  '<=',
  'and',
  'or',
  'unless',
  'atan2',
]);
const MATCHING = ['=', '!=', '=~', '!~'];
const NUMBERS = new Set(['inf', 'nan']);

/** Reads one query by recursive descent; what it cannot read it throws. */
class Parser {
  readonly #tokens: readonly Token[];
  #index = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  whole(): void {
    if (this.#tokens.length === 1) this.#fail('there is no query');
    this.#expression();
    if (this.#token.kind !== 'end') this.#fail(`${shown(this.#token)} is one thing too many`);
  }

  get #token(): Token {
    return this.#tokens[this.#index] ?? { kind: 'end', text: '', at: 0 };
  }

  #expression(): void {
    this.#depth += 1;
    if (this.#depth > DEPTH_MAX) throw new Unparsable(undefined);
    this.#operand();
    while (this.#isBinary()) {
      this.#index += 1;
      this.#takeWord('bool');
      if (this.#takeWord('on', 'ignoring')) {
        this.#labels();
        if (this.#takeWord('group_left', 'group_right') && this.#token.text === '(') this.#labels();
      }
      this.#operand();
    }
    this.#depth -= 1;
  }

  #isBinary(): boolean {
    const { kind, text } = this.#token;
    return (kind === 'sign' || kind === 'name') && BINARY.has(text.toLowerCase());
  }

  #operand(): void {
    for (let isSigned = true; isSigned; ) isSigned = this.#take('+') || this.#take('-');
    this.#primary();
    for (;;) {
      if (this.#take('[')) this.#range();
      else if (this.#takeWord('offset')) {
        this.#take('-');
        this.#duration();
      } else if (this.#take('@')) this.#instant();
      else return;
    }
  }

  #primary(): void {
    const token = this.#token;
    const { kind, text } = token;
    if (kind === 'number' || kind === 'duration' || kind === 'string') this.#index += 1;
    else if (this.#take('(')) {
      this.#expression();
      this.#close(')', token);
    } else if (text === '{') this.#matchers();
    else if (kind === 'name' && !this.#isBinary()) this.#named();
    else
      this.#fail(
        kind === 'end' ? 'something is missing at its end' : `${shown(token)} where a value is expected`,
      );
  }

  /** A series, or a function or aggregation with its arguments. */
  #named(): void {
    const name = this.#token;
    this.#index += 1;
    if (NUMBERS.has(name.text.toLowerCase())) return;
    if (this.#takeWord('by', 'without')) {
      this.#labels();
      if (this.#token.text !== '(') this.#fail(`${name.text} has no arguments`);
    }
    if (this.#token.text === '(') this.#call(name);
    else if (this.#token.text === '{') this.#matchers();
  }

  #call(name: Token): void {
    if (!FUNCTIONS.has(name.text.toLowerCase())) {
      const near = nearestName(name.text, FUNCTIONS);
      const meant = near === undefined ? '' : `; did you mean ${near}?`;
      this.#fail(`there is no function ${name.text}${meant}`, name);
    }
    const open = this.#token;
    this.#index += 1;
    if (!this.#take(')')) {
      do this.#expression();
      while (this.#take(','));
      this.#close(')', open);
    }
    if (this.#takeWord('by', 'without')) this.#labels();
  }

  #matchers(): void {
    const open = this.#token;
    this.#index += 1;
    while (!this.#take('}')) {
      const { kind } = this.#token;
      if (kind === 'end') this.#fail('a brace { that is not closed', open);
      if (kind !== 'name' && kind !== 'string') this.#fail(`${shown(this.#token)} where a label is expected`);
      this.#index += 1;
      if (MATCHING.some((sign) => this.#take(sign))) {
        if (this.#token.kind !== 'string') this.#fail('the value of a label is no text in quotes');
        this.#index += 1;
      } else if (kind !== 'string') this.#fail(`a label without one of ${MATCHING.join(' ')}`);
      if (!this.#take(',') && this.#token.text !== '}') this.#close('}', open);
    }
  }

  #labels(): void {
    const open = this.#token;
    if (!this.#take('(')) this.#fail('a list of labels in brackets is missing');
    while (!this.#take(')')) {
      const { kind } = this.#token;
      if (kind !== 'name' && kind !== 'string') this.#close(')', open);
      this.#index += 1;
      if (!this.#take(',') && this.#token.text !== ')') this.#close(')', open);
    }
  }

  /** `5m]`, `1h:5m]`, `1h:]`, after the bracket. */
  #range(): void {
    const open = this.#token;
    this.#duration();
    if (this.#take(':') && this.#token.text !== ']') this.#duration();
    this.#close(']', open);
  }

  #duration(): void {
    const { kind } = this.#token;
    if (kind !== 'duration' && kind !== 'number')
      this.#fail(`${shown(this.#token)} is no duration, such as 5m or 1h30m`);
    this.#index += 1;
  }

  #instant(): void {
    this.#take('-');
    if (this.#takeWord('start', 'end')) {
      if (!this.#take('(') || !this.#take(')')) this.#fail('@ start() and @ end() take nothing');
    } else if (this.#token.kind === 'number') this.#index += 1;
    else this.#fail(`${shown(this.#token)} is no time for @`);
  }

  #take(sign: string): boolean {
    if (this.#token.kind !== 'sign' || this.#token.text !== sign) return false;
    this.#index += 1;
    return true;
  }

  #takeWord(...words: readonly string[]): boolean {
    if (this.#token.kind !== 'name' || !words.includes(this.#token.text.toLowerCase())) return false;
    this.#index += 1;
    return true;
  }

  #close(sign: string, open: Token): void {
    if (this.#take(sign)) return;
    if (this.#token.kind === 'end') this.#fail(`a bracket that is not closed by ${sign}`, open);
    this.#fail(`${shown(this.#token)} where ${sign} is expected`);
  }

  #fail(what: string, { at }: Token = this.#token): never {
    throw new Unparsable({ at, what });
  }
}

function shown({ kind, text }: Token): string {
  return kind === 'end' ? 'the end' : text.length <= 40 ? text : `${text.slice(0, 39)}…`;
}

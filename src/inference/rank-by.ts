import { MillraceError } from '../core/errors.ts';

export interface HintDefault {
  name: string;
  /** Stands in where a request does not give the hint. */
  default: number;
}

/** A family's `rankBy`, compiled: what makes a candidate's score out of the heads. */
export interface RankBy {
  readonly expression: string;
  /**
   * @param heads FP32 [count or more] each, in the order of the names it was compiled with
   * @returns FP32 [count]
   * @throws MillraceError NON_FINITE where a hint that it reads is not a number
   */
  score(heads: readonly Float32Array[], hints: Readonly<Record<string, number>>, count: number): Float32Array;
}

type BinaryOperator = '+' | '-' | '*' | '/' | 'min' | 'max';

/** One step of the program in reverse Polish notation; it works on columns, one row per candidate. */
type Step =
  | { kind: 'number'; value: number }
  | { kind: 'hint'; hint: HintDefault }
  | { kind: 'head'; index: number }
  | { kind: 'negate' }
  | { kind: BinaryOperator };

const LENGTH_MAX = 1024;
const NESTING_MAX = 64;
const TOKEN =
  /\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_][A-Za-z0-9_]*)|([-+*/(),]))/y;

/**
 * Compiles arithmetic in double precision: numbers, names of heads and hints, `+ - * /`, unary `-`, parentheses,
 * `min(a, b, …)`, `max(a, b, …)`. Nothing is evaluated as code.
 * @throws MillraceError INVALID_MODEL with the position, and the names that are known.
 */
export function compileRankBy(
  expression: string,
  heads: readonly string[],
  hints: readonly HintDefault[],
): RankBy {
  const steps = new Parser(expression, heads, hints).parse();
  const columns: Float64Array[] = [];
  return {
    expression,
    score(headValues, hintValues, count) {
      return Float32Array.from(run(steps, columns, headValues, hintValues, count).subarray(0, count));
    },
  };
}

class Parser {
  readonly #expression: string;
  readonly #heads: readonly string[];
  readonly #hints: readonly HintDefault[];
  readonly #tokens: { text: string; at: number }[] = [];
  readonly #steps: Step[] = [];
  #next = 0;
  #nesting = 0;

  constructor(expression: string, heads: readonly string[], hints: readonly HintDefault[]) {
    this.#expression = expression;
    this.#heads = heads;
    this.#hints = hints;
    for (const name of heads) {
      if (hints.some((hint) => hint.name === name))
        throw this.#problem(`${name} is both a head and a hint`, 0);
    }
  }

  parse(): Step[] {
    if (this.#expression.length > LENGTH_MAX)
      throw this.#problem(`is longer than ${LENGTH_MAX} characters`, 0);
    this.#tokenize();
    this.#sum();
    const rest = this.#tokens[this.#next];
    if (rest !== undefined) throw this.#problem(`did not expect ${rest.text}`, rest.at);
    return this.#steps;
  }

  #tokenize(): void {
    const end = this.#expression.trimEnd().length;
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < end) {
      const at = TOKEN.lastIndex;
      const match = TOKEN.exec(this.#expression);
      if (match === null) throw this.#problem('cannot be read', at);
      const text = match[0].trimStart();
      this.#tokens.push({ text, at: at + match[0].length - text.length });
    }
  }

  #sum(): void {
    this.#product();
    for (let operator = this.#take('+', '-'); operator !== undefined; operator = this.#take('+', '-')) {
      this.#product();
      this.#steps.push({ kind: operator });
    }
  }

  #product(): void {
    this.#factor();
    for (let operator = this.#take('*', '/'); operator !== undefined; operator = this.#take('*', '/')) {
      this.#factor();
      this.#steps.push({ kind: operator });
    }
  }

  #factor(): void {
    let negations = 0;
    while (this.#take('-') !== undefined) negations += 1;
    this.#operand();
    if (negations % 2 === 1) this.#steps.push({ kind: 'negate' });
  }

  #operand(): void {
    const token = this.#tokens[this.#next];
    if (token === undefined) throw this.#problem('ends too early', this.#expression.length);
    this.#next += 1;
    if (/^[\d.]/.test(token.text)) this.#steps.push({ kind: 'number', value: Number(token.text) });
    else if (token.text === '(') this.#inside(() => this.#sum());
    else if ((token.text === 'min' || token.text === 'max') && this.#take('(') !== undefined)
      this.#call(token.text);
    else this.#name(token.text, token.at);
  }

  #call(kind: 'min' | 'max'): void {
    this.#inside(() => {
      this.#sum();
      while (this.#take(',') !== undefined) {
        this.#sum();
        this.#steps.push({ kind });
      }
    });
  }

  /** What stands up to the closing parenthesis. */
  #inside(parse: () => void): void {
    this.#nesting += 1;
    const at = this.#tokens[this.#next - 1]?.at ?? 0;
    if (this.#nesting > NESTING_MAX) throw this.#problem(`nests deeper than ${NESTING_MAX}`, at);
    parse();
    if (this.#take(')') === undefined) throw this.#problem('has no ) for the (', at);
    this.#nesting -= 1;
  }

  #name(text: string, at: number): void {
    const index = this.#heads.indexOf(text);
    const hint = this.#hints.find(({ name }) => name === text);
    if (index >= 0) this.#steps.push({ kind: 'head', index });
    else if (hint !== undefined) this.#steps.push({ kind: 'hint', hint });
    else throw this.#problem(`does not know ${text}`, at);
  }

  #take<Text extends string>(...texts: Text[]): Text | undefined {
    const text = texts.find((candidate) => candidate === this.#tokens[this.#next]?.text);
    if (text !== undefined) this.#next += 1;
    return text;
  }

  #problem(what: string, at: number): MillraceError {
    const names = [...this.#heads, ...this.#hints.map((hint) => hint.name)];
    return new MillraceError('INVALID_MODEL', `rankBy ${what} at character ${at + 1}`, {
      value: this.#expression,
      allowed: `numbers, + - * / ( ), min, max, ${names.join(', ')}`,
    });
  }
}

/** `columns` is the stack, one column of doubles per level, kept and grown from call to call. */
function run(
  steps: readonly Step[],
  columns: Float64Array[],
  heads: readonly Float32Array[],
  hints: Readonly<Record<string, number>>,
  count: number,
): Float64Array {
  let depth = 0;
  for (const step of steps) {
    switch (step.kind) {
      case 'number':
        column(columns, depth++, count).fill(step.value, 0, count);
        break;
      case 'hint':
        column(columns, depth++, count).fill(hintValue(step.hint, hints), 0, count);
        break;
      case 'head':
        copyHead(column(columns, depth++, count), heads[step.index], count);
        break;
      case 'negate':
        negate(column(columns, depth - 1, count), count);
        break;
      default:
        depth -= 1;
        combine(step.kind, column(columns, depth - 1, count), column(columns, depth, count), count);
    }
  }
  return column(columns, 0, count);
}

function column(columns: Float64Array[], level: number, count: number): Float64Array {
  const kept = columns[level];
  if (kept !== undefined && kept.length >= count) return kept;
  const grown = new Float64Array(Math.max(count, 2 * (kept?.length ?? 0)));
  if (kept !== undefined) grown.set(kept);
  columns[level] = grown;
  return grown;
}

function hintValue(hint: HintDefault, hints: Readonly<Record<string, number>>): number {
  const value = Object.hasOwn(hints, hint.name) ? (hints[hint.name] ?? hint.default) : hint.default;
  if (!Number.isFinite(value)) {
    throw new MillraceError('NON_FINITE', `hint ${hint.name} is no finite number`, { value });
  }
  return value;
}

function copyHead(into: Float64Array, head: Float32Array | undefined, count: number): void {
  if (head === undefined || head.length < count) {
    throw new RangeError(`a head has ${head?.length ?? 0} values, rankBy needs ${count}`);
  }
  for (let i = 0; i < count; i++) into[i] = head[i] ?? 0;
}

function negate(a: Float64Array, count: number): void {
  for (let i = 0; i < count; i++) a[i] = -(a[i] ?? 0);
}

/** a ← a operator b. One loop per operator, so that each stays a plain loop over numbers. */
function combine(operator: BinaryOperator, a: Float64Array, b: Float64Array, count: number): void {
  switch (operator) {
    case '+':
      for (let i = 0; i < count; i++) a[i] = (a[i] ?? 0) + (b[i] ?? 0);
      return;
    case '-':
      for (let i = 0; i < count; i++) a[i] = (a[i] ?? 0) - (b[i] ?? 0);
      return;
    case '*':
      for (let i = 0; i < count; i++) a[i] = (a[i] ?? 0) * (b[i] ?? 0);
      return;
    case '/':
      for (let i = 0; i < count; i++) a[i] = (a[i] ?? 0) / (b[i] ?? 0);
      return;
    case 'min':
      for (let i = 0; i < count; i++) a[i] = Math.min(a[i] ?? 0, b[i] ?? 0);
      return;
    case 'max':
      for (let i = 0; i < count; i++) a[i] = Math.max(a[i] ?? 0, b[i] ?? 0);
      return;
  }
}

import type { Dim } from '../onnx-file/graph.ts';

/** The first axis of everything that follows from an input: one row per request or candidate. */
export const ROWS = '#rows';

/**
 * A whole number that may depend on sizes that only a call knows: a sum of products. By the symbols of a product (`T`, `T*T`, '' for none), how
 * often it counts. Written `2*T+1`, products in alphabetical order, so that equal sizes are equal texts.
 */
type Sum = ReadonlyMap<string, number>;

/** The size that several axes have together. */
export function productOf(dims: readonly Dim[]): Dim {
  return write(dims.map(read).reduce(times, new Map([['', 1]])));
}

export function sumOf(dims: readonly Dim[]): Dim {
  return write(dims.map(read).reduce(plus, new Map()));
}

export function differenceOf(a: Dim, b: Dim): Dim {
  return write(plus(read(a), times(read(b), new Map([['', -1]]))));
}

/** `a / b`; `undefined` where that is no whole number, or cannot be told. */
export function quotientOf(a: Dim, b: Dim): Dim | undefined {
  if (a === b && a !== 0) return 1;
  const under = [...read(b)];
  const [divisor] = under;
  if (divisor === undefined || under.length > 1) return undefined;
  const quotient = new Map<string, number>();
  for (const [symbols, count] of read(a)) {
    const rest = without(symbols, divisor[0]);
    if (rest === undefined || count % divisor[1] !== 0) return undefined;
    quotient.set(rest, count / divisor[1]);
  }
  return write(quotient);
}

/** A size as what it is the sum of: so many times a product of symbols. */
export function termsOf(dim: Dim): { count: number; symbols: readonly string[] }[] {
  return [...read(dim)].map(([symbols, count]) => ({ count, symbols: symbolsIn(symbols) }));
}

/** How many rows of a value a row of its level has: more than one where an exporter folds heads into the rows. `undefined` where it has none. */
export function rowsFactor([first]: readonly Dim[]): number | undefined {
  const factor = first === undefined ? undefined : quotientOf(first, ROWS);
  return typeof factor === 'number' ? factor : undefined;
}

function without(symbols: string, others: string): string | undefined {
  const left = symbolsIn(symbols);
  for (const symbol of symbolsIn(others)) {
    const at = left.indexOf(symbol);
    if (at < 0) return undefined;
    left.splice(at, 1);
  }
  return left.join('*');
}

function symbolsIn(product: string): string[] {
  return product === '' ? [] : product.split('*');
}

function plus(a: Sum, b: Sum): Sum {
  const sum = new Map(a);
  for (const [symbols, count] of b) sum.set(symbols, (sum.get(symbols) ?? 0) + count);
  return sum;
}

function times(a: Sum, b: Sum): Sum {
  const product = new Map<string, number>();
  for (const [left, count] of a) {
    for (const [right, other] of b) {
      const symbols = [...symbolsIn(left), ...symbolsIn(right)].sort().join('*');
      product.set(symbols, (product.get(symbols) ?? 0) + count * other);
    }
  }
  return product;
}

function read(dim: Dim): Sum {
  if (typeof dim === 'number') return new Map([['', dim]]);
  const sum = new Map<string, number>();
  for (const term of dim.split('+')) {
    const parts = term.split('*');
    const count = Number(parts[0]);
    if (Number.isNaN(count)) sum.set(term, 1);
    else sum.set(parts.slice(1).join('*'), count);
  }
  return sum;
}

function write(sum: Sum): Dim {
  const terms = [...sum].filter(([, count]) => count !== 0).sort(([a], [b]) => (a < b ? 1 : -1));
  if (terms.length === 0) return 0;
  const [first] = terms;
  if (first !== undefined && terms.length === 1 && first[0] === '') return first[1];
  return terms.map(([symbols, count]) => termOf(symbols, count)).join('+');
}

function termOf(symbols: string, count: number): string {
  if (symbols === '') return String(count);
  return count === 1 ? symbols : `${count}*${symbols}`;
}

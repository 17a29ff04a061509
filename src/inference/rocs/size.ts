import type { Dim } from '../onnx-file/graph.ts';

/** The first axis of everything that follows from an input: one row per request or candidate. */
export const ROWS = '#rows';

/** A product of a number and of sizes that only a call knows, each as often as it occurs. */
interface Product {
  readonly factor: number;
  readonly symbols: readonly string[];
}

/** The size that several axes have together: a number, or symbols joined by `*`, a factor first. */
export function productOf(dims: readonly Dim[]): Dim {
  return toDim(dims.map(toProduct).reduce(multiply, { factor: 1, symbols: [] }));
}

/** `a / b`; `undefined` where that is no whole number, or cannot be told. */
export function quotientOf(a: Dim, b: Dim): Dim | undefined {
  const [over, under] = [toProduct(a), toProduct(b)];
  if (under.factor === 0 || over.factor % under.factor !== 0) return undefined;
  const symbols = [...over.symbols];
  for (const symbol of under.symbols) {
    const at = symbols.indexOf(symbol);
    if (at < 0) return undefined;
    symbols.splice(at, 1);
  }
  return toDim({ factor: over.factor / under.factor, symbols });
}

function toProduct(dim: Dim): Product {
  if (typeof dim === 'number') return { factor: dim, symbols: [] };
  const parts = dim.split('*');
  const factor = Number(parts[0]);
  return Number.isNaN(factor) ? { factor: 1, symbols: parts } : { factor, symbols: parts.slice(1) };
}

function multiply(a: Product, b: Product): Product {
  return { factor: a.factor * b.factor, symbols: [...a.symbols, ...b.symbols].sort() };
}

function toDim({ factor, symbols }: Product): Dim {
  if (symbols.length === 0 || factor === 0) return factor;
  return factor === 1 ? symbols.join('*') : [factor, ...symbols].join('*');
}

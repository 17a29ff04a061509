const SINGULAR = 1e-12;
/** Smaller ones, beside the largest, are what rounding left. */
const ROUNDING = 1e-10;

/** Of a linear fit of ones: for features f of each sample, Σ fᵢ·fⱼ and Σ fᵢ. Symmetric; those of more samples are added up. */
export interface NormalEquations {
  readonly products: readonly (readonly number[])[];
  readonly sums: readonly number[];
}

/** The coefficients ≥ 0 of least squares. One that would be below 0 is left out (0), and the rest solved again; so is one that follows from others. */
export function notNegativeSolution({ products, sums }: NormalEquations): number[] {
  const used = new Set(sums.keys());
  for (;;) {
    const kept = [...used];
    const solved = solve({
      products: kept.map((row) => kept.map((column) => products[row]?.[column] ?? 0)),
      sums: kept.map((row) => sums[row] ?? 0),
    });
    const least = solved.reduce((at, value, n) => (value < (solved[at] ?? 0) ? n : at), 0);
    if ((solved[least] ?? 0) >= 0) return sums.map((_, column) => solved[kept.indexOf(column)] ?? 0);
    used.delete(kept[least] ?? 0);
  }
}

/** Features scaled to length 1 first: they differ by orders of magnitude. */
function solve({ products, sums }: NormalEquations): number[] {
  const lengths = sums.map((_, n) => Math.sqrt(products[n]?.[n] ?? 0) || 1);
  const system = products.map((row, n) => {
    const length = lengths[n] ?? 1;
    return [...row.map((value, m) => value / length / (lengths[m] ?? 1)), (sums[n] ?? 0) / length];
  });
  const scaled = eliminate(system);
  const noise = ROUNDING * Math.max(...scaled.map(Math.abs));
  return scaled.map((value, n) => (Math.abs(value) <= noise ? 0 : value / (lengths[n] ?? 1)));
}

/** Gauss and Jordan, with the largest pivot of a column. */
function eliminate(system: number[][]): number[] {
  const size = system.length;
  const rowOf = new Array<number>(size).fill(-1);
  for (let column = 0, next = 0; column < size; column += 1) {
    const pivot = largestFrom(system, next, column);
    const found = system[pivot];
    if (found === undefined || Math.abs(found[column] ?? 0) < SINGULAR) continue;
    [system[pivot], system[next]] = [system[next] ?? [], found];
    system.forEach((row, n) => {
      if (n !== next) subtract(row, found, (row[column] ?? 0) / (found[column] ?? 1));
    });
    rowOf[column] = next;
    next += 1;
  }
  return rowOf.map((row, column) =>
    row < 0 ? 0 : (system[row]?.[size] ?? 0) / (system[row]?.[column] ?? 1),
  );
}

function largestFrom(system: readonly number[][], start: number, column: number): number {
  let largest = start;
  for (let row = start; row < system.length; row += 1)
    if (Math.abs(system[row]?.[column] ?? 0) > Math.abs(system[largest]?.[column] ?? 0)) largest = row;
  return largest;
}

function subtract(row: number[], from: readonly number[], factor: number): void {
  for (let n = 0; n < row.length; n += 1) row[n] = (row[n] ?? 0) - factor * (from[n] ?? 0);
}

/** What a reader answers for a value that is not of its shape. */
export const MISFIT = Symbol('misfit');
export type Misfit = typeof MISFIT;

/** Reads one shape of JSON, and makes a value of only what it knows. Never throws. */
export type Shape<T> = (value: unknown) => T | Misfit;

export type Shaped<S> = S extends Shape<infer T> ? T : never;

export const text: Shape<string> = (value) => (typeof value === 'string' ? value : MISFIT);
export const flag: Shape<boolean> = (value) => (typeof value === 'boolean' ? value : MISFIT);

/** A whole number from 0 on. */
export const count: Shape<number> = (value) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : MISFIT;

/** Finite. What is read here is written into the log, and read again from there: JSON writes -0 as 0. */
export function number(min: number, max = Number.MAX_VALUE): Shape<number> {
  return (value) => (typeof value === 'number' && value >= min && value <= max ? value + 0 : MISFIT);
}

export function oneOf<const T extends string>(allowed: readonly T[]): Shape<T> {
  return (value) => allowed.find((one) => one === value) ?? MISFIT;
}

export function either<A, B>(first: Shape<A>, second: Shape<B>): Shape<A | B> {
  return (value) => {
    const read = first(value);
    return read === MISFIT ? second(value) : read;
  };
}

/** What is missing, or null, is `fallback`. */
export function optional<T, F>(shape: Shape<T>, fallback: F): Shape<T | F> {
  return (value) => (value === undefined || value === null ? fallback : shape(value));
}

export function list<T>(shape: Shape<T>): Shape<readonly T[]> {
  return (value) => {
    if (!Array.isArray(value)) return MISFIT;
    const items: T[] = [];
    for (const each of value) {
      const item = shape(each);
      if (item === MISFIT) return MISFIT;
      items.push(item);
    }
    return items;
  };
}

/** Values by free names. */
export function dictionary<T>(shape: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return (value) => {
    if (!isObject(value)) return MISFIT;
    const entries: [string, T][] = [];
    for (const [name, each] of Object.entries(value)) {
      const read = shape(each);
      if (read === MISFIT) return MISFIT;
      entries.push([name, read]);
    }
    return Object.fromEntries(entries);
  };
}

type Fields = Readonly<Record<string, Shape<unknown>>>;
type Fielded<F extends Fields> = { -readonly [K in keyof F]: Shaped<F[K]> };

/** An object with these fields; others are left out. */
export function fields<F extends Fields>(shapes: F): Shape<Fielded<F>> {
  return (value) => {
    if (!isObject(value)) return MISFIT;
    const entries: [string, unknown][] = [];
    for (const [name, shape] of Object.entries(shapes)) {
      const read = shape(value[name]);
      if (read === MISFIT) return MISFIT;
      entries.push([name, read]);
    }
    return Object.fromEntries(entries) as Fielded<F>;
  };
}

/** The same, and MISFIT where it has any other field: what that was meant to say would be lost. */
export function onlyFields<F extends Fields>(shapes: F): Shape<Fielded<F>> {
  const read = fields(shapes);
  return (value) =>
    isObject(value) && Object.keys(value).every((name) => Object.hasOwn(shapes, name)) ? read(value) : MISFIT;
}

/** The value that the text is the JSON of; MISFIT where it is none. */
export function parseJson<T>(json: string, shape: Shape<T>): T | Misfit {
  try {
    return shape(JSON.parse(json));
  } catch (error) {
    if (error instanceof SyntaxError) return MISFIT;
    throw error;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

import * as v from 'valibot';
import { type TensorDatatype, type TensorValue, tensor } from '../client/tensors.ts';
import type { Tensor } from '../contracts/records.ts';
import { type ErrorDetail, MillraceError } from '../core/errors.ts';
import { closedObject, whole } from '../core/json-values.ts';
import { DATATYPES } from '../core/request/tensor.ts';

/** For FP16 there is no number in JSON that it is not read from as another. */
const WRITABLE = DATATYPES.filter((datatype) => datatype !== 'FP16');
const LONG_FORM = closedObject({
  datatype: v.optional(v.picklist(WRITABLE)),
  shape: v.optional(v.array(v.pipe(whole, v.minValue(0)))),
  values: v.array(v.unknown()),
});
const FORMS =
  'nested arrays of numbers (FP32), or {"datatype": …, "shape": [whole numbers], "values": nested arrays}; datatypes: ' +
  WRITABLE.join(', ');

/**
 * Tensors by name, each as nested arrays (FP32, their nesting is the shape) or as `{datatype?, shape?, values}`.
 * @throws MillraceError INVALID_REQUEST naming the path, INVALID_TENSOR where values do not fit the datatype or the shape
 */
export function readTensors(
  file: string,
  field: string,
  byName: Readonly<Record<string, unknown>>,
): Tensor[] {
  return Object.entries(byName).map(([name, written]) => {
    const path = pathText([field, name]);
    const { datatype, shape, values } = toLongForm(file, path, written);
    const nested = new NestedValues(file, datatype, Array.isArray(written) ? path : `${path}.values`);
    const nesting = nested.read(values);
    try {
      return tensor(name, datatype, shape ?? nesting, nested.flat);
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      throw new MillraceError(error.code, `${file}: ${path}: ${error.message}`, { cause: error });
    }
  });
}

interface LongForm {
  datatype: TensorDatatype;
  shape: number[] | undefined;
  values: unknown[];
}

function toLongForm(file: string, path: string, written: unknown): LongForm {
  if (Array.isArray(written)) return { datatype: 'FP32', shape: undefined, values: written };
  const parsed = v.safeParse(LONG_FORM, written);
  if (!parsed.success) throw fileProblem(file, path, 'this is no tensor', { value: written, allowed: FORMS });
  const { datatype = 'FP32', shape, values } = parsed.output;
  return { datatype, shape, values };
}

const RANK_MAX = 8;

/** Reads nested arrays that are as regular as a tensor. */
class NestedValues {
  readonly flat: TensorValue[] = [];
  readonly #file: string;
  readonly #path: string;
  readonly #datatype: TensorDatatype;

  constructor(file: string, datatype: TensorDatatype, path: string) {
    this.#file = file;
    this.#path = path;
    this.#datatype = datatype;
  }

  /** Answers the shape of the nesting; values are added to `flat` in row-major order. */
  read(values: readonly unknown[], at: readonly number[] = []): number[] {
    if (at.length >= RANK_MAX)
      throw this.#problem(at, 'the arrays are nested too deeply', { allowed: `at most ${RANK_MAX}` });
    let shape: readonly number[] | undefined;
    for (const [index, value] of values.entries()) {
      const here = [...at, index];
      const inner = Array.isArray(value) ? this.read(value, here) : this.#leaf(value, here);
      shape ??= inner;
      if (shape.length !== inner.length || shape.some((size, axis) => inner[axis] !== size))
        throw this.#problem(here, 'it has another shape than its neighbours', {
          value: inner,
          allowed: JSON.stringify(shape),
        });
    }
    return [values.length, ...(shape ?? [])];
  }

  #leaf(value: unknown, at: readonly number[]): readonly number[] {
    if (!this.#isValue(value))
      throw this.#problem(at, `this is no value of ${this.#datatype}`, { value, allowed: this.#allowed() });
    this.flat.push(value);
    return [];
  }

  #isValue(value: unknown): value is TensorValue {
    if (this.#datatype === 'BYTES') return typeof value === 'string';
    if (this.#datatype === 'BOOL') return typeof value === 'boolean' || value === 0 || value === 1;
    return typeof value === 'number';
  }

  #allowed(): string {
    if (this.#datatype === 'BYTES') return 'texts';
    return this.#datatype === 'BOOL' ? 'true, false' : 'numbers';
  }

  #problem(at: readonly number[], what: string, detail: ErrorDetail): MillraceError {
    return fileProblem(this.#file, `${this.#path}${at.map((index) => `[${index}]`).join('')}`, what, detail);
  }
}

/** `ranker.json: candidateTensors.item[2][31]: what is wrong (got …; allowed: …)` */
export function fileProblem(file: string, path: string, what: string, detail: ErrorDetail): MillraceError {
  return new MillraceError('INVALID_REQUEST', `${file}: ${path === '' ? '' : `${path}: `}${what}`, detail);
}

/** `candidateTensors.item[2]` */
export function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) =>
      typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${String(part)}`,
    )
    .join('');
}

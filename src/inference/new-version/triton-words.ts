import { listNames, MillraceError } from '../../core/errors.ts';
import type { OnnxGraph, OnnxValue } from '../onnx-file/graph.ts';
import { TensorProto_DataType } from '../onnx-file/onnx-proto.ts';
import type { TritonConfig, TritonTensor } from '../triton-config/triton-config.ts';

/** What a config.pbtxt says that a version has to know too. */
export interface TritonWords {
  /** Outputs that are served; `undefined` where the file names none. */
  readonly outputs: readonly string[] | undefined;
  /** By the name of an axis that the graph leaves free: the size that the file gives it. */
  readonly sizes: ReadonlyMap<string, number>;
  /** Rows of one call: candidates, for a model with a row for each; `undefined` where the file sets no limit. */
  readonly candidatesMax: number | undefined;
}

const TYPES: ReadonlyMap<string, number> = new Map([
  ['FP32', TensorProto_DataType.FLOAT],
  ['INT64', TensorProto_DataType.INT64],
]);

/**
 * Reads a model's config.pbtxt against its graph.
 * @throws MillraceError INVALID_MODEL where it is about another model: other names, datatypes or sizes
 */
export function tritonWords(config: TritonConfig, graph: OnnxGraph): TritonWords {
  const sizes = new Map<string, number>();
  for (const [what, tensors, values] of [
    ['input', config.inputs, graph.inputs],
    ['output', config.outputs, graph.outputs],
  ] as const) {
    for (const tensor of tensors) {
      const value = values.find(({ name }) => name === tensor.name);
      if (value === undefined)
        throw differs(
          `the graph has no ${what} ${tensor.name}`,
          tensor.name,
          listNames(values.map(({ name }) => name)),
        );
      checkTensor(what, tensor, value);
      if (what === 'input') for (const [axis, size] of sizesOf(tensor, value)) addSize(sizes, axis, size);
    }
  }
  const outputs = config.outputs.map(({ name }) => name);
  return {
    outputs: outputs.length > 0 ? outputs : undefined,
    sizes,
    candidatesMax: config.maxBatchSize > 0 ? config.maxBatchSize : undefined,
  };
}

function checkTensor(what: string, { name, datatype, dims }: TritonTensor, { type, shape }: OnnxValue): void {
  const wanted = TYPES.get(datatype);
  if (datatype !== '' && wanted !== type)
    throw differs(`${what} ${name} is of another datatype in the graph`, datatype, typeName(type));
  if (dims.length === 0 || shape === undefined) return;
  const isSame =
    dims.length === shape.length &&
    dims.every((size, axis) => size === -1 || typeof shape[axis] === 'string' || shape[axis] === size);
  if (!isSame) throw differs(`${what} ${name} has another shape in the graph`, dims, `[${shape.join(', ')}]`);
}

function typeName(type: number): string {
  return [...TYPES].find(([, own]) => own === type)?.[0] ?? `ONNX element type ${type}`;
}

/** Of axes behind the rows. */
function sizesOf({ dims }: TritonTensor, { shape = [] }: OnnxValue): [string, number][] {
  return shape.flatMap((size, axis): [string, number][] => {
    const given = dims[axis] ?? -1;
    return axis > 0 && typeof size === 'string' && given > 0 ? [[size, given]] : [];
  });
}

function addSize(sizes: Map<string, number>, axis: string, size: number): void {
  const known = sizes.get(axis);
  if (known !== undefined && known !== size)
    throw differs(`axis ${axis} of the graph has two sizes`, size, String(known));
  sizes.set(axis, size);
}

function differs(what: string, value: unknown, allowed: string): MillraceError {
  return new MillraceError('INVALID_MODEL', what, {
    value,
    allowed,
    advice: 'The config.pbtxt is of another model than the file.',
  });
}

import { MillraceError } from '../core/errors.ts';
import type { InputContract } from '../core/request/family.ts';
import type { GraphSignature, GraphValue } from './graph-call.ts';
import type { ModelVersion } from './repository/model-version.ts';

const ELEMENT_TYPE: Readonly<Partial<Record<InputContract['datatype'], string>>> = {
  FP32: 'float32',
  INT64: 'int64',
};

/**
 * Holds a graph's inputs and outputs against the config: the same names, element types and shapes, nothing more, nothing less.
 * @throws MillraceError INVALID_MODEL with everything that differs
 */
export function checkGraph(version: ModelVersion, signature: GraphSignature): void {
  const inputs = version.inputs.map((input) => ({
    name: input.name,
    type: ELEMENT_TYPE[input.datatype],
    shape: graphShape(input),
  }));
  inputs.push(...tileInputs(version.tiles));
  const outputs = version.heads.map((head) => ({ name: head.name, type: 'float32', shape: [-1] }));
  const differences = [
    ...compare('input', inputs, signature.inputs),
    ...compare('output', outputs, signature.outputs),
  ];
  if (differences.length === 0) return;
  throw new MillraceError(
    'INVALID_MODEL',
    `${version.family}/${version.version}: ${differences.join('; ')}`,
    {
      advice: 'Make config.yaml say what the graph takes and gives.',
    },
  );
}

function tileInputs(tiles: ModelVersion['tiles']): { name: string; type: string; shape: number[] }[] {
  if (tiles === undefined) return [];
  return [
    { name: tiles.candidates, type: 'int64', shape: [-1, -1] },
    { name: tiles.requests, type: 'int64', shape: [-1] },
    { name: tiles.slots, type: 'int64', shape: [-1] },
  ];
}

/** With the axis that counts a batch's requests. */
function graphShape({ side, shape }: InputContract): number[] {
  return side === 'request' || side === 'request-length' ? [-1, ...shape] : [...shape];
}

function compare(
  what: 'input' | 'output',
  wanted: readonly { name: string; type: string | undefined; shape: readonly number[] }[],
  given: readonly GraphValue[],
): string[] {
  const extra = given.filter(({ name }) => !wanted.some((one) => one.name === name));
  const differences = extra.map(
    ({ name }) => `the graph has an ${what} ${name} that the config does not name`,
  );
  for (const { name, type, shape } of wanted) {
    const value = given.find((one) => one.name === name);
    if (value === undefined) {
      differences.push(`the graph has no ${what} ${name}`);
    } else if (value.type !== type || !sameShape(shape, value.shape)) {
      differences.push(
        `${what} ${name} is ${value.type} [${value.shape.join(', ')}] in the graph, ${type} [${shape.join(', ')}] in the config`,
      );
    }
  }
  return differences;
}

function sameShape(config: readonly number[], graph: readonly (number | string)[]): boolean {
  return (
    config.length === graph.length &&
    config.every((size, axis) => (size === -1 ? typeof graph[axis] === 'string' : size === graph[axis]))
  );
}

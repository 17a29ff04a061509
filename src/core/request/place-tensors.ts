import type { FamilyContract, InputContract, InputSide } from './family.ts';
import { type Rejection, reject } from './rejection.ts';
import type { Tensor } from './tensor.ts';

export type TensorsField = 'requestTensors' | 'candidateTensors';

/** Puts each tensor at its input's place; refuses those that have none, or whose place is taken. */
export function placeTensors(
  sent: readonly Tensor[],
  field: TensorsField,
  family: FamilyContract,
  tensors: (Tensor | undefined)[],
): Rejection | undefined {
  for (const tensor of sent) {
    const index = family.inputs.findIndex((input) => input.name === tensor.name);
    const input = family.inputs[index];
    if (input === undefined || fieldOf(input.side) !== field)
      return misplaced(tensor.name, input, field, family);
    if (tensors[index] !== undefined)
      return reject('INVALID_TENSOR', `${field} holds two tensors of one name`, {
        value: tensor.name,
        allowed: 'one tensor per input',
      });
    tensors[index] = tensor;
  }
  return undefined;
}

/** Where the tensors of a side are sent; `undefined` for what millrace computes. */
export function fieldOf(side: InputSide): TensorsField | undefined {
  switch (side) {
    case 'request':
    case 'request-length':
      return 'requestTensors';
    case 'candidate':
      return 'candidateTensors';
    case 'request-index':
      return undefined;
  }
}

function misplaced(
  name: string,
  input: InputContract | undefined,
  field: TensorsField,
  family: FamilyContract,
): Rejection {
  const names = family.inputs.filter(({ side }) => fieldOf(side) === field).map((known) => known.name);
  const detail = { value: name, allowed: names.length === 0 ? 'none' : names.join(', ') };
  if (input === undefined)
    return reject(
      'INVALID_TENSOR',
      `${field} holds a tensor that model ${JSON.stringify(family.family)} has no input for`,
      detail,
    );
  const right = fieldOf(input.side);
  const advice = right === undefined ? 'Leave it out: millrace computes it.' : `Send it in ${right}.`;
  return reject('INVALID_TENSOR', `${field} holds a tensor that does not belong there`, {
    ...detail,
    advice,
  });
}

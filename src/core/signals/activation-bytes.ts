import type { InputContract } from '../request/family.ts';
import { ELEMENT_BYTES } from '../request/tensor.ts';
import type { Signal } from './signal.ts';

export const activationBytes: Signal = {
  version: 1,
  type: 'int',
  unit: 'B',
  costBudgetUs: 1,
  docs:
    'Bytes that the inputs of the request take on the accelerator: Σ over the inputs of the family of their contents; ' +
    'N rows of the declared size where candidates come from an item table, 0 for a sequence that was left out. Never NaN.',
  read(view) {
    let bytes = 0;
    for (let i = 0; i < view.family.inputs.length; i++) {
      const input = view.family.inputs[i];
      if (input === undefined) continue;
      bytes += view.tensors[i]?.contents.length ?? bytesOfAbsent(input, view.candidateCount);
    }
    return bytes;
  },
};

/** What an input takes that the request did not send: a free dimension has size N on the candidate side, else 0. */
function bytesOfAbsent(input: InputContract, candidateCount: number): number {
  const free = input.side === 'candidate' || input.side === 'request-index' ? candidateCount : 0;
  return input.shape.reduce(
    (bytes, size) => bytes * (size === -1 ? free : size),
    ELEMENT_BYTES[input.datatype],
  );
}

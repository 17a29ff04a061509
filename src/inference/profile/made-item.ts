import { own } from '../../core/own.ts';
import { type InputContract, isSequence } from '../../core/request/family.ts';
import { ELEMENT_BYTES, type Tensor } from '../../core/request/tensor.ts';
import type { ScoreItem } from '../../ports/accelerator.ts';
import type { Golden } from '../repository/golden.ts';
import type { ModelVersion } from '../repository/model-version.ts';

export interface ItemShape {
  readonly candidates: number;
  /** Of each of its sequences. */
  readonly rows: number;
  /** Of the candidates' floats; as the golden cases have them where left out. */
  readonly zeroShare?: number;
}

/** How many floats an item has on either side, and how many of the request's are not 0. */
export interface FloatCounts {
  readonly request: number;
  readonly requestNonZeros: number;
  readonly candidate: number;
}

/** Makes requests of any shape for a version, of the values that its golden cases have: what a graph takes for an id is in there. */
export class ItemMaker {
  readonly #version: ModelVersion;
  /** By input. */
  readonly #values: ReadonlyMap<string, readonly number[]>;
  readonly #random: { next(): number };

  constructor(version: ModelVersion, golden: Golden, random: { next(): number }) {
    this.#version = version;
    this.#values = new Map(version.inputs.map(({ name }) => [name, goldenValues(golden, name)]));
    this.#random = random;
  }

  /** Whether zeros of the candidates' side can be a matter. */
  get hasCandidateFloats(): boolean {
    return this.#version.inputs.some((input) => input.side === 'candidate' && isFloats(input));
  }

  get hasSequence(): boolean {
    return this.#version.inputs.some(isSequence);
  }

  /** Whether all of its sequences may be left out. */
  get mayBeWithoutRows(): boolean {
    return this.#version.inputs.filter(isSequence).every(({ required }) => !required);
  }

  /** Of all tensors of a request. */
  bytes(shape: ItemShape): number {
    return this.#sent(shape).reduce(
      (sum, input) => sum + sizeOf(dimsOf(input, shape)) * ELEMENT_BYTES[input.datatype],
      0,
    );
  }

  counts(item: ScoreItem): FloatCounts {
    const request = floatsOf(item.requestTensors);
    return {
      request: sum(request.map((values) => values.length)),
      requestNonZeros: sum(request.map((values) => values.filter((value) => value !== 0).length)),
      candidate: sum(floatsOf(item.candidateTensors).map((values) => values.length)),
    };
  }

  make(shape: ItemShape): ScoreItem {
    const sent = this.#sent(shape);
    const tensorsOf = (side: InputContract['side']): Tensor[] =>
      sent.filter((input) => input.side === side).map((input) => this.#tensor(input, shape));
    return {
      requestTensors: tensorsOf('request'),
      candidateTensors: tensorsOf('candidate'),
      hints: {},
      scoreLimit: shape.candidates,
    };
  }

  #sent({ rows }: ItemShape): InputContract[] {
    return this.#version.inputs.filter(
      (input) =>
        input.side === 'candidate' || (input.side === 'request' && !(isSequence(input) && rows === 0)),
    );
  }

  #tensor(input: InputContract, shape: ItemShape): Tensor {
    const { name, datatype, side } = input;
    const dims = dimsOf(input, shape);
    const length = sizeOf(dims);
    const zeroShare = side === 'candidate' && isFloats(input) ? shape.zeroShare : undefined;
    const next = this.#drawing(this.#values.get(name) ?? [], zeroShare);
    const values = isFloats(input)
      ? Float32Array.from({ length }, next)
      : BigInt64Array.from({ length }, () => BigInt(next()));
    return { name, datatype, shape: dims, contents: Buffer.from(values.buffer) };
  }

  #drawing(values: readonly number[], zeroShare: number | undefined): () => number {
    const random = this.#random;
    const drawn = zeroShare === undefined ? values : values.filter((value) => value !== 0);
    const draw = (): number =>
      drawn.length === 0 ? 1 - random.next() : (drawn[Math.floor(random.next() * drawn.length)] ?? 0);
    return zeroShare === undefined ? draw : () => (random.next() < zeroShare ? 0 : draw());
  }
}

function isFloats({ datatype }: InputContract): boolean {
  return datatype === 'FP32';
}

function dimsOf({ side, shape }: InputContract, { candidates, rows }: ItemShape): number[] {
  if (side !== 'candidate') return shape.map((size) => (size === -1 ? rows : size));
  return [candidates, ...shape.slice(1)];
}

function sizeOf(dims: readonly number[]): number {
  return dims.reduce((product, size) => product * size, 1);
}

function floatsOf(tensors: readonly Tensor[]): Float32Array[] {
  return tensors.flatMap(({ datatype, contents }) => (datatype === 'FP32' ? floatsIn(contents) : []));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function goldenValues(golden: Golden, name: string): number[] {
  return golden.cases.flatMap(({ inputs }) => {
    const tensor = own(inputs, name);
    if (tensor === undefined) return [];
    return tensor.datatype === 'FP32' ? [...floatsIn(tensor.contents)] : longsIn(tensor.contents);
  });
}

function floatsIn(contents: Buffer): Float32Array {
  return Float32Array.from({ length: contents.length / 4 }, (_, n) => contents.readFloatLE(4 * n));
}

function longsIn(contents: Buffer): number[] {
  return Array.from({ length: contents.length / 8 }, (_, n) => Number(contents.readBigInt64LE(8 * n)));
}

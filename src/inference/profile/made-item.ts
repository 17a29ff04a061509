import { own } from '../../core/own.ts';
import { type InputContract, isSequence } from '../../core/request/family.ts';
import { type Datatype, ELEMENT_BYTES, elementCount, type Tensor } from '../../core/request/tensor.ts';
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
  readonly #values: ReadonlyMap<string, GoldenValues>;
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
      (sum, input) => sum + elementCount(dimsOf(input, shape)) * ELEMENT_BYTES[input.datatype],
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
    const length = elementCount(dims);
    const zeroShare = side === 'candidate' && isFloats(input) ? shape.zeroShare : undefined;
    const { floats, longs } = this.#values.get(name) ?? NO_VALUES;
    const nextFloat = this.#drawing(floats, zeroShare);
    const values = isFloats(input)
      ? Float32Array.from({ length }, nextFloat)
      : BigInt64Array.from({ length }, () => this.#oneOf(longs) ?? 0n);
    return { name, datatype, shape: dims, contents: Buffer.from(values.buffer) };
  }

  #drawing(values: readonly number[], zeroShare: number | undefined): () => number {
    const random = this.#random;
    const drawn = zeroShare === undefined ? values : values.filter((value) => value !== 0);
    const draw = (): number => this.#oneOf(drawn) ?? 1 - random.next();
    return zeroShare === undefined ? draw : () => (random.next() < zeroShare ? 0 : draw());
  }

  #oneOf<Value>(values: readonly Value[]): Value | undefined {
    return values.length === 0 ? undefined : values[Math.floor(this.#random.next() * values.length)];
  }
}

/** What the golden cases have of an input: one of the two, by its datatype. */
interface GoldenValues {
  readonly floats: readonly number[];
  /** A hash that stands for an id may need all of its bits. */
  readonly longs: readonly bigint[];
}

const NO_VALUES: GoldenValues = { floats: [], longs: [] };

function isFloats({ datatype }: InputContract): boolean {
  return datatype === 'FP32';
}

function dimsOf({ side, shape }: InputContract, { candidates, rows }: ItemShape): number[] {
  if (side !== 'candidate') return shape.map((size) => (size === -1 ? rows : size));
  return [candidates, ...shape.slice(1)];
}

function floatsOf(tensors: readonly Tensor[]): Float32Array[] {
  return tensors.flatMap(({ datatype, contents }) => (datatype === 'FP32' ? floatsIn(contents) : []));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function goldenValues({ cases }: Golden, name: string): GoldenValues {
  const tensors = cases.flatMap(({ inputs }) => own(inputs, name) ?? []);
  const contentsOf = (datatype: Datatype): Buffer[] =>
    tensors.filter((tensor) => tensor.datatype === datatype).map(({ contents }) => contents);
  return {
    floats: contentsOf('FP32').flatMap((contents) => [...floatsIn(contents)]),
    longs: contentsOf('INT64').flatMap(longsIn),
  };
}

function floatsIn(contents: Buffer): Float32Array {
  return Float32Array.from({ length: contents.length / 4 }, (_, n) => contents.readFloatLE(4 * n));
}

function longsIn(contents: Buffer): bigint[] {
  return Array.from({ length: contents.length / 8 }, (_, n) => contents.readBigInt64LE(8 * n));
}

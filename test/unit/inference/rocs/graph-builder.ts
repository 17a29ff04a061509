import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { float32, int64 } from '../../../../src/inference/onnx-file/constant.ts';
import type {
  Dim,
  OnnxConstant,
  OnnxGraph,
  OnnxNode,
  OnnxValue,
} from '../../../../src/inference/onnx-file/graph.ts';
import type { AttributeProto } from '../../../../src/inference/onnx-file/onnx-proto.ts';

const [FLOAT, INT64] = [1, 7];

/** Writes down a model node by node, as an exporter would: every input has a row per candidate. */
export class GraphBuilder {
  readonly #inputs: OnnxValue[] = [];
  readonly #nodes: OnnxNode[] = [];
  readonly #constants = new Map<string, OnnxConstant>();
  readonly #random: { next(): number };
  #names = 0;

  constructor(seed = 1) {
    this.#random = seededRandom(seed).stream('weights');
  }

  input(name: string, ...rest: Dim[]): string {
    this.#inputs.push({ name, type: FLOAT, shape: ['N', ...rest] });
    return name;
  }

  integers(name: string, ...rest: Dim[]): string {
    this.#inputs.push({ name, type: INT64, shape: ['N', ...rest] });
    return name;
  }

  node(
    op: string,
    inputs: readonly string[],
    attributes: readonly AttributeProto[] = [],
    name?: string,
  ): string {
    this.#names += 1;
    const output = `${op.toLowerCase()}_${this.#names}`;
    this.#nodes.push({ op, name: name ?? output, inputs, outputs: [output], attributes });
    return output;
  }

  /** Uniform in ±1/√(rows), and zero where `isZero` says so. */
  weights(dims: readonly number[], isZero: (row: number, column: number) => boolean = () => false): string {
    const [rows = 1, columns = 1] = dims;
    const size = dims.reduce((product, each) => product * each, 1);
    const scale = 1 / Math.sqrt(rows);
    const values = Array.from({ length: size }, (_, n) => {
      const value = (this.#random.next() * 2 - 1) * scale;
      return isZero(Math.floor(n / columns), n % columns) ? 0 : value;
    });
    return this.constant(float32(dims, values));
  }

  numbers(...values: number[]): string {
    return this.constant(int64([values.length], values));
  }

  constant(constant: OnnxConstant): string {
    this.#names += 1;
    const name = `constant_${this.#names}`;
    this.#constants.set(name, constant);
    return name;
  }

  build(...outputs: { from: string; shape: Dim[] }[]): OnnxGraph {
    return {
      name: 'test',
      irVersion: 10n,
      opset: 20,
      inputs: this.#inputs,
      outputs: outputs.map(({ from, shape }) => ({ name: from, type: FLOAT, shape: ['N', ...shape] })),
      constants: this.#constants,
      nodes: this.#nodes,
    };
  }
}

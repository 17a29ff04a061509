import type { ProductWeights } from '../onnx-file/product-weights.ts';
import { kernelModule } from './kernel-code.ts';
import { bytesFor, type KernelLayout, kernelLayout, placesByMask } from './kernel-layout.ts';

interface Memory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/** What is used of it here: its full types come only with those of a browser. */
declare const WebAssembly: {
  Memory: new (pages: { initial: number }) => Memory;
  Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  Instance: new (
    module: object,
    imports: { host: { memory: object } },
  ) => { readonly exports: { run(x: number, y: number, rows: number): number } };
};

const PAGE_BYTES = 65_536;

/**
 * y = x · W + b over the non-zeros of x alone. Whatever W holds where x is zero is not read: 0 · ∞ and 0 · NaN, which are NaN by IEEE 754, count
 * as 0 here. Every other value, −0, ∞ and NaN among them, counts as it does in a dense product, but for the order of the additions.
 */
export class SparseProduct {
  readonly #layout: KernelLayout;
  readonly #memory: Memory;
  readonly #run: (x: number, y: number, rows: number) => number;
  #floats: Float32Array<ArrayBuffer>;
  /** Of the last call. */
  nonZeros = 0;

  constructor({ inner, columns, weights, bias }: ProductWeights) {
    const layout = kernelLayout(inner, columns);
    const memory = new WebAssembly.Memory({ initial: pages(bytesFor(layout, layout.blockRows)) });
    new Uint16Array(memory.buffer).set(placesByMask());
    const floats = new Float32Array(memory.buffer);
    if (bias !== undefined) floats.set(bias.subarray(0, columns), layout.bias / 4);
    for (let row = 0; row < inner; row += 1)
      floats.set(
        weights.subarray(row * columns, (row + 1) * columns),
        layout.weights / 4 + row * layout.paddedColumns,
      );
    const module = new WebAssembly.Module(kernelModule(layout));
    this.#run = new WebAssembly.Instance(module, { host: { memory } }).exports.run;
    this.#layout = layout;
    this.#memory = memory;
    this.#floats = floats;
  }

  /** @returns FP32 [rows, H], which the next call writes over */
  multiply(x: Float32Array, rows: number): Float32Array<ArrayBuffer> {
    this.#reserve(rows);
    const { inner, columns, block, blockRows, result } = this.#layout;
    const floats = this.#floats;
    let nonZeros = 0;
    for (let row = 0; row < rows; row += blockRows) {
      const some = Math.min(blockRows, rows - row);
      floats.set(x.subarray(row * inner, (row + some) * inner), block / 4);
      nonZeros += this.#run(block, result + row * columns * 4, some);
    }
    this.nonZeros = nonZeros;
    return floats.subarray(result / 4, result / 4 + rows * columns);
  }

  #reserve(rows: number): void {
    const bytes = bytesFor(this.#layout, rows);
    const missing = pages(bytes - this.#memory.buffer.byteLength);
    if (missing <= 0) return;
    this.#memory.grow(missing);
    this.#floats = new Float32Array(this.#memory.buffer);
  }
}

function pages(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES);
}

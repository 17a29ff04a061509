import type { Density } from '../../ports/accelerator.ts';
import type { SlabTensor } from '../graph-call.ts';
import type { CutProduct } from './cut-products.ts';
import { SparseProduct } from './sparse-product.ts';

/** What a product gives, until the next call. */
export interface Multiplied {
  name: string;
  dims: readonly number[];
  values: Float32Array<ArrayBuffer>;
}

/** The products that were cut out of a graph, each with a kernel of its own. */
export class FirstLayer {
  readonly #products: readonly { input: string; output: string; columns: number; product: SparseProduct }[];

  constructor(products: readonly CutProduct[]) {
    this.#products = products.map(({ input, output, columns, ...weights }) => ({
      input,
      output,
      columns,
      product: new SparseProduct({ columns, ...weights }),
    }));
  }

  run(slab: ArrayBuffer, feeds: readonly SlabTensor[]): { multiplied: Multiplied[]; density: Density } {
    const density: Density = { values: 0, nonZeros: 0 };
    const multiplied = this.#products.map(({ input, output, columns, product }): Multiplied => {
      const feed = feeds.find(({ name }) => name === input);
      if (feed === undefined) throw new RangeError(`there is no ${input} to multiply`);
      const axes = feed.dims.slice(0, -1);
      const rows = axes.reduce((count, size) => count * size, 1);
      const size = rows * (feed.dims.at(-1) ?? 0);
      const values = product.multiply(new Float32Array(slab, feed.offset, size), rows);
      density.values += size;
      density.nonZeros += product.nonZeros;
      return { name: output, dims: [...axes, columns], values };
    });
    return { multiplied, density };
  }
}

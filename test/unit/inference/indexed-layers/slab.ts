import type { SlabTensor } from '../../../../src/inference/graph-call.ts';
import type { TrialFeeds } from '../../../../src/inference/rocs/trial-batch.ts';

/** A batch as a worker packs it, and room for its outputs. */
export function slabOf(
  feeds: TrialFeeds,
  outputs: readonly string[],
  candidates: number,
): { slab: ArrayBuffer; feeds: SlabTensor[]; outputs: SlabTensor[] } {
  let end = 0;
  const place = (name: string, datatype: SlabTensor['datatype'], dims: readonly number[], bytes: number) => {
    const offset = end;
    end = Math.ceil((end + bytes) / 64) * 64;
    return { name, datatype, offset, dims: [...dims] };
  };
  const placed = Object.entries(feeds).map(([name, { type, data, dims }]) => ({
    data,
    tensor: place(name, type === 'int64' ? 'INT64' : 'FP32', dims, data.byteLength),
  }));
  const heads = outputs.map((name) => place(name, 'FP32', [candidates], 4 * candidates));
  const slab = new ArrayBuffer(end);
  for (const { data, tensor } of placed)
    new Uint8Array(slab, tensor.offset, data.byteLength).set(
      new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
    );
  return { slab, feeds: placed.map(({ tensor }) => tensor), outputs: heads };
}

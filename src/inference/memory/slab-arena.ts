/** Every tensor in a slab begins at a multiple of this: a cache line, and the widest vector of a CPU. */
export const ALIGNMENT_BYTES = 64;

const SMALLEST_CLASS_BYTES = 64 * 1024;

export interface SlabArenaOptions {
  /** Free slabs kept for reuse, all size classes together. */
  keptBytesMax: number;
}

/**
 * Memory for batches: slabs in size classes (powers of two from 64 KiB), handed out, taken back and used again, so that a
 * steady load allocates nothing. What is kept is bounded; a slab that would pass the bound is left to the garbage collector.
 */
export interface SlabArena {
  /** A slab of at least `bytes`; what is in it is left over from other batches. */
  lease(bytes: number): ArrayBuffer;
  /** Gives a slab back; nobody may read or write it afterwards. */
  release(slab: ArrayBuffer): void;
  readonly keptBytes: number;
  /** Slabs that had to be allocated so far. */
  readonly allocations: number;
}

export function createSlabArena(options: SlabArenaOptions): SlabArena {
  const free = new Map<number, ArrayBuffer[]>();
  let keptBytes = 0;
  let allocations = 0;
  return {
    lease(bytes) {
      const size = slabBytes(bytes);
      const slab = free.get(size)?.pop();
      if (slab !== undefined) {
        keptBytes -= size;
        return slab;
      }
      allocations += 1;
      return new ArrayBuffer(size);
    },
    release(slab) {
      if (keptBytes + slab.byteLength > options.keptBytesMax) return;
      const slabs = free.get(slab.byteLength) ?? [];
      slabs.push(slab);
      free.set(slab.byteLength, slabs);
      keptBytes += slab.byteLength;
    },
    get keptBytes() {
      return keptBytes;
    },
    get allocations() {
      return allocations;
    },
  };
}

/** The size class of a slab that holds `bytes`. */
export function slabBytes(bytes: number): number {
  let size = SMALLEST_CLASS_BYTES;
  while (size < bytes) size *= 2;
  return size;
}

export function align(offset: number): number {
  return Math.ceil(offset / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
}

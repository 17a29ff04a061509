/** A live worker of a pool and the slots that it holds, or is about to. */
export interface SlotHolder {
  readonly worker: string;
  readonly slots: readonly number[];
}

export interface SlotShareView {
  readonly own: SlotHolder;
  /** The live workers of the pool besides. */
  readonly others: readonly SlotHolder[];
  /** Partitions of the pool's dispatch topic. */
  readonly slots: number;
  /** Most slots of one worker. */
  readonly slotsMax: number;
}

export type SlotMove = { readonly claim: number } | { readonly release: number };

/**
 * What a worker that shares its pool's slots does next. Each decides alone, from heartbeats: all see the same, a little late. Whatever nobody
 * holds is claimed by those that have least, each its own slot where there are several; where nothing is left to claim and a
 * worker has less than all could have, the one that holds most lets go of one. Shares differ by one at the end, and nothing moves any more.
 */
export function nextSlotMove(view: SlotShareView): SlotMove | undefined {
  const { own, others, slots, slotsMax } = view;
  const workers = others.length + 1;
  const atMost = Math.min(slotsMax, Math.ceil(slots / workers));
  const atLeast = Math.min(slotsMax, Math.floor(slots / workers));
  const all = [own, ...others].sort(fewestFirst);
  const held = new Set(all.flatMap((holder) => holder.slots));
  const vacant = Array.from({ length: slots }, (_, slot) => slot).filter((slot) => !held.has(slot));
  if (vacant.length > 0) {
    if (own.slots.length >= atMost) return undefined;
    const wanting = all.filter((holder) => holder.slots.length < atMost);
    const claim = vacant[wanting.indexOf(own)];
    return claim === undefined ? undefined : { claim };
  }
  const isUneven = own.slots.length > atMost || all.some((holder) => holder.slots.length < atLeast);
  if (!isUneven || all.at(-1) !== own || own.slots.length <= atLeast) return undefined;
  return { release: Math.max(...own.slots) };
}

function fewestFirst(a: SlotHolder, b: SlotHolder): number {
  return a.slots.length - b.slots.length || (a.worker < b.worker ? -1 : 1);
}

/** Padding every request to the longest one is best up to this many times the candidates that there are. */
const PADDING_RATIO_MAX = 1.3;
const TILE_SLOTS = 32;

/** How the candidates of a batch lie in tiles, each of one request. */
export interface TilePlan {
  tiles: number;
  /** In each tile. */
  slots: number;
  /** INT64 [tiles, slots]: the candidate in each slot; 0 where it is empty: computed, and read by nobody. */
  candidates: BigInt64Array;
  /** INT64 [tiles]: the request of each. */
  requests: BigInt64Array;
  /** INT64 [candidates]: tile · slots + slot of each. */
  slotOf: BigInt64Array;
}

/**
 * One tile per request where their candidates are about as many, else tiles of 32.
 * @param requestOf by candidate, in any order; each below `requests`
 */
export function planTiles(requestOf: ArrayLike<bigint>, requests: number): TilePlan {
  const counts = new Array<number>(requests).fill(0);
  for (let n = 0; n < requestOf.length; n += 1) {
    const request = Number(requestOf[n]);
    counts[request] = (counts[request] ?? 0) + 1;
  }
  const slots = slotsFor(counts, requestOf.length);
  const firstTiles: number[] = [];
  let tiles = 0;
  for (const count of counts) {
    firstTiles.push(tiles);
    tiles += Math.ceil(count / slots);
  }
  return fill(requestOf, firstTiles, tiles, slots);
}

function slotsFor(counts: readonly number[], candidates: number): number {
  const longest = counts.reduce((max, count) => Math.max(max, count), 0);
  const used = counts.filter((count) => count > 0).length;
  return used * longest <= PADDING_RATIO_MAX * candidates ? Math.max(longest, 1) : TILE_SLOTS;
}

function fill(
  requestOf: ArrayLike<bigint>,
  firstTiles: readonly number[],
  tiles: number,
  slots: number,
): TilePlan {
  const plan = {
    tiles,
    slots,
    candidates: new BigInt64Array(tiles * slots),
    requests: new BigInt64Array(tiles),
    slotOf: new BigInt64Array(requestOf.length),
  };
  const next = firstTiles.map((tile) => tile * slots);
  for (let candidate = 0; candidate < requestOf.length; candidate += 1) {
    const request = Number(requestOf[candidate]);
    const slot = next[request] ?? 0;
    next[request] = slot + 1;
    plan.candidates[slot] = BigInt(candidate);
    plan.requests[Math.floor(slot / slots)] = BigInt(request);
    plan.slotOf[candidate] = BigInt(slot);
  }
  return plan;
}

/**
 * Whether the identity comes for the first time. All results of an identity lie on one partition, in the order of their offsets:
 * in a stream of that partition the first one is the one with the lowest offset, and so the answer.
 */
export type FirstResultFilter = (identityKey: string) => boolean;

/**
 * Tells first results from second ones with bounded memory: at most `identitiesMax` identities (whole number, at least 2) are
 * remembered, and always the half of that number that came last; a duplicate that comes after its identity was forgotten
 * passes for a first result. Second results follow a crash or a hedge within seconds: twice the rate times 60 s is plenty.
 *
 * Two generations, in place of a list in order of use: when the young one is full the old one is dropped whole. Deleting the
 * oldest key of a Map or Set one by one leaves holes that every look at its first key walks over: several times as slow.
 */
export function createFirstResultFilter({ identitiesMax }: { identitiesMax: number }): FirstResultFilter {
  const generationMax = Math.max(1, Math.floor(identitiesMax / 2));
  let young = new Set<string>();
  let old = new Set<string>();
  return (identityKey) => {
    if (young.has(identityKey)) return false;
    const first = !old.delete(identityKey);
    if (young.size >= generationMax) {
      old = young;
      young = new Set();
    }
    young.add(identityKey);
    return first;
  };
}

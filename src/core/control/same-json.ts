/** Whether two values are the same JSON, whatever the order of their fields; a field that is undefined is none. */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return one === other;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, index) => isSameJson(item, other[index]));
  }
  const mine = definedEntries(one);
  const theirs = new Map(definedEntries(other));
  return (
    mine.length === theirs.size &&
    mine.every(([name, value]) => theirs.has(name) && isSameJson(value, theirs.get(name)))
  );
}

function definedEntries(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, each]) => each !== undefined);
}

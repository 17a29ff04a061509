import { nearestName } from '../core/policy/nearest.ts';

const PREFIX = /^MILLRACE_/;

/**
 * The setting that was probably meant by a name that is none: a slip of the pen, else the one that has its words. What all names begin with counts for
 * nothing, or short names would all be near each other.
 *
 * @param written a variable, or a path within the configuration file
 * @param known names of the same kind
 */
export function nearestSetting(written: string, known: Iterable<string>): string | undefined {
  const byBareName = new Map([...known].map((name) => [name.replace(PREFIX, ''), name]));
  const bare = written.replace(PREFIX, '');
  const slip = nearestName(bare, byBareName.keys());
  if (slip !== undefined) return byBareName.get(slip);
  const words = wordsOf(bare);
  let best: { name: string; missing: number; extra: number } | undefined;
  for (const [bareName, name] of byBareName) {
    const others = wordsOf(bareName);
    const missing = words.filter((word) => nearestName(word, others) === undefined).length;
    if (missing === words.length) continue;
    const extra = others.length - (words.length - missing);
    const isNearer =
      best === undefined || missing < best.missing || (missing === best.missing && extra < best.extra);
    if (isNearer) best = { name, missing, extra };
  }
  return best?.name;
}

/** `KAFKA_SASL_USERNAME` and `kafka.saslUsername` alike. */
function wordsOf(name: string): string[] {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[._]/)
    .filter((word) => word !== '');
}

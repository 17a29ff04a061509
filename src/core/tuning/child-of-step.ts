import { parsePolicy } from '../policy/parse.ts';
import { tunedChild } from '../policy/tuned-child.ts';
import type { TuningStepped } from './tuning-event.ts';

/**
 * The text of the child policy that a step makes: its parent with one constant moved. A constant that is at its default again is not named, so that at
 * home nothing but version and parent is left of the tuning.
 *
 * @param parent digest of the parent's exact bytes, `sha256:<hex>`
 * @throws DocumentError INVALID_POLICY: a constant that the parent does not have, or a value out of its bounds
 */
export function childOfStep(
  parentText: string,
  parent: string,
  { name, to, version }: Pick<TuningStepped, 'name' | 'to' | 'version'>,
): string {
  const { tuned, tunables } = parsePolicy(parentText);
  const values = new Map(tuned).set(name, to);
  for (const tunable of tunables)
    if (values.get(tunable.name) === tunable.default) values.delete(tunable.name);
  return tunedChild(parentText, { parent, version, tuned: values });
}

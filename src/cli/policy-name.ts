import { MillraceError } from '../core/errors.ts';
import { NAME, NAME_ALLOWED } from '../core/policy/parse-tree.ts';

const PREFIX = 'policy/';

/** `starter` or `policy/starter` as the scope of commands: `policy/starter`. @throws MillraceError INVALID_CONFIG */
export function scopeOfPolicy(name: string): string {
  const bare = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
  if (NAME.test(bare)) return `${PREFIX}${bare}`;
  throw new MillraceError('INVALID_CONFIG', 'that is not a name of a policy', {
    value: name,
    allowed: NAME_ALLOWED,
  });
}

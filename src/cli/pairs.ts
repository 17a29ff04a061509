import { MillraceError } from '../core/errors.ts';
import { namesIn } from './onnx-model.ts';

/**
 * Pairs of a flag, `a=b,c=d`, by what stands on the left.
 * @param read answers `undefined` for what may not stand on the right
 * @throws MillraceError INVALID_CONFIG
 */
export function pairsIn<Value>(
  flag: string,
  text: string | undefined,
  read: (text: string) => Value | undefined,
): Map<string, Value> {
  const pairs = new Map<string, Value>();
  for (const pair of namesIn(text ?? '')) {
    const at = pair.indexOf('=');
    const name = pair.slice(0, Math.max(at, 0)).trim();
    const value = at < 0 ? undefined : read(pair.slice(at + 1).trim());
    if (name === '' || value === undefined || value === '' || pairs.has(name)) {
      throw new MillraceError('INVALID_CONFIG', `${flag} cannot be read`, {
        value: pair,
        allowed:
          'pairs separated by commas, each name once, such as --lengths history_length=history, --size T=32, --hints weight=1.5',
      });
    }
    pairs.set(name, value);
  }
  return pairs;
}

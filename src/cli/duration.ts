import { MillraceError } from '../core/errors.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** `250ms`, `15s`, `2m`, `1h`, in milliseconds. */
export function parseDuration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text.trim());
  const unit = UNITS[match?.[2] ?? ''];
  if (match === null || unit === undefined) {
    throw new MillraceError('INVALID_CONFIG', 'that is not a duration', {
      value: text,
      allowed: 'a number with ms, s, m or h, such as 15s',
    });
  }
  return Number(match[1]) * unit;
}

import { MillraceError } from '../core/errors.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
/** A month; nothing here runs longer, and timers cannot. */
const DURATION_MS_MAX = 31 * 24 * 3_600_000;

/** `250ms`, `15s`, `2m`, `1h`, in milliseconds; at most 31 days. @throws MillraceError INVALID_CONFIG */
export function parseDuration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text.trim());
  const unit = UNITS[match?.[2] ?? ''] ?? Number.NaN;
  const durationMs = Number(match?.[1]) * unit;
  if (durationMs <= DURATION_MS_MAX) return durationMs;
  throw new MillraceError('INVALID_CONFIG', 'that is not a duration', {
    value: text,
    allowed: 'a number with ms, s, m or h, such as 15s; at most 744h',
  });
}

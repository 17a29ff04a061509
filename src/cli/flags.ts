import { InvalidArgumentError } from 'commander';
import { MillraceError } from '../core/errors.ts';
import { NAME, NAME_ALLOWED } from '../core/policy/parse-tree.ts';
import { parseDuration } from './duration.ts';

/** Readers of option values for commander: what they throw is told with the option's name, and exit code 2. */

/** A finite number above zero. */
export function positiveNumber(text: string): number {
  const value = numberOf(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Allowed: a number above 0.');
}

/** A whole number from 1. */
export function count(text: string): number {
  const value = numberOf(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new InvalidArgumentError('Allowed: a whole number from 1.');
}

/** A whole number from 0. */
export function seed(text: string): number {
  const value = numberOf(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new InvalidArgumentError('Allowed: a whole number from 0.');
}

/** What a fleet or a policy can call something. */
export function name(text: string): string {
  if (NAME.test(text)) return text;
  throw new InvalidArgumentError(`Allowed: ${NAME_ALLOWED}.`);
}

/** `250ms`, `15s`, `2m`, `1h`, in milliseconds: longer than nothing. */
export function duration(text: string): number {
  const durationMs = durationOrNone(text);
  if (durationMs > 0) return durationMs;
  throw new InvalidArgumentError('Allowed: a number above 0 with ms, s, m or h, such as 15s.');
}

/** The same, and `0s`. */
export function durationOrNone(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    throw new InvalidArgumentError('Allowed: a number with ms, s, m or h, such as 15s.');
  }
}

/** `Number` takes an empty text for 0, and hexadecimal. */
function numberOf(text: string): number {
  return /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
}

const SECONDS = /^\d{1,12}(\.\d{1,9})?$/;
const DATE = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(\.\d{1,9})?Z?$/;

export const TIME_STAMP_ALLOWED = 'YYYY-MM-DD hh:mm:ss.fraction, in UTC, or seconds as a number ≥ 0';

/** A moment as traces write it, ms with their fractions; NaN for what is none. */
export function parseTimeStamp(text: string): number {
  if (SECONDS.test(text)) return Number(text) * 1_000;
  const match = DATE.exec(text);
  if (match === null) return Number.NaN;
  return Date.parse(`${match[1]}T${match[2]}Z`) + Number(match[3] ?? 0) * 1_000;
}

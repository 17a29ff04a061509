import type { HoldCode, HoldReason } from './rollout-event.ts';

const SHOWN_MAX = 5;

/** One reason for all that speak against going on for the same cause, the first of them by name; none where nothing does. */
export function reasonOf(code: HoldCode, what: readonly string[], before: string): HoldReason[] {
  if (what.length === 0) return [];
  const more = what.length > SHOWN_MAX ? ` and ${what.length - SHOWN_MAX} more` : '';
  return [{ code, text: `${before}: ${what.slice(0, SHOWN_MAX).join('; ')}${more}` }];
}

export function percent(share: number): string {
  return `${Math.round(share * 10_000) / 100} %`;
}

/** Digits that count, as far as people read them. */
export function rounded(value: number, digits: number): number {
  return Number(value.toPrecision(digits));
}

export function seconds(ms: number): number {
  return Math.round(ms / 1_000);
}

import { describe, expect, it } from 'vitest';
import { parseDuration } from '../../../src/cli/duration.ts';

describe('a duration', () => {
  it.each([
    ['250ms', 250],
    ['15s', 15_000],
    ['0.5s', 500],
    ['2m', 120_000],
    ['1h', 3_600_000],
    [' 3s ', 3_000],
    ['0s', 0],
    ['744h', 2_678_400_000],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(['', '15', 's', '-1s', '1e3s', '1 s', '15S', '1d', 'NaNs', '745h', `${'9'.repeat(400)}s`])(
    '"%s" is none',
    (text) => {
      expect(() => parseDuration(text)).toThrow(/not a duration.*such as 15s/);
    },
  );
});

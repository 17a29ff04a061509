import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutText } from '../../../src/core/cut-text.ts';

describe('cutText', () => {
  it.each([
    ['short enough', 12, 'short enough'],
    ['a'.repeat(41), 40, `${'a'.repeat(23)}… (41 characters)`],
    [`${'a'.repeat(22)}😀${'b'.repeat(40)}`, 40, `${'a'.repeat(22)}\ufffd… (64 characters)`],
  ])('%s, at most %d', (text, max, expected) => {
    expect(cutText(text, max)).toBe(expected);
  });

  it('keeps to its bound, the beginning, and whole characters', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 200 }),
        fc.integer({ min: 30, max: 100 }),
        (text, max) => {
          const cut = cutText(text, max);
          expect(cut.length).toBeLessThanOrEqual(max);
          expect(cut.isWellFormed()).toBe(true);
          if (text.length <= max) expect(cut).toBe(text);
          else expect(text.startsWith(cut.slice(0, max - 20).replace(/\ufffd?…?.*$/, ''))).toBe(true);
        },
      ),
    );
  });
});

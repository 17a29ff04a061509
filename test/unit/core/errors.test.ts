import { describe, expect, it } from 'vitest';
import { listNames } from '../../../src/core/errors.ts';

describe('listNames', () => {
  it.each([
    [0, 'none is loaded'],
    [1, 'n0'],
    [20, Array.from({ length: 20 }, (_, at) => `n${at}`).join(', ')],
    [23, `${Array.from({ length: 20 }, (_, at) => `n${at}`).join(', ')} and 3 more`],
  ])('of %d names', (count, expected) => {
    const names = new Set(Array.from({ length: count }, (_, at) => `n${at}`));
    expect(listNames(names, 'none is loaded')).toBe(expected);
  });
});

import { expect, it } from 'vitest';
import { listVersions } from '../../../../src/core/control/published-policy.ts';

it.each([
  [0, 'none'],
  [2, '1, 2'],
  [20, Array.from({ length: 20 }, (_, at) => at + 1).join(', ')],
  [23, `3 older, ${Array.from({ length: 20 }, (_, at) => at + 4).join(', ')}`],
])('of %d versions a message lists the latest', (count, expected) => {
  const published = Array.from({ length: count }, (_, at) => ({ digest: 'd', name: 'n', version: at + 1 }));
  expect(listVersions(published)).toBe(expected);
});

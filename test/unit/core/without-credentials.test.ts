import { describe, expect, it } from 'vitest';
import { withoutCredentials } from '../../../src/core/without-credentials.ts';

describe('withoutCredentials', () => {
  it.each([
    ['http://me:secret@host:1/a?b#c', 'http://host:1/a?b#c'],
    ['http://token@host', 'http://host'],
    ['redis://:pa@ss@host:6379/0 and REDISS://u:p@h', 'redis://host:6379/0 and REDISS://h'],
    ['get s3+http://u:p@h/x@y', 'get s3+http://h/x@y'],
    ['http://host/users/@me', 'http://host/users/@me'],
    ['http://host?to=me@example.org', 'http://host?to=me@example.org'],
    ['mail me@example.org', 'mail me@example.org'],
    ['nothing', 'nothing'],
    ['3http://me:secret@host', '3http://host'],
    ['://me@host', '://me@host'],
  ])('%s → %s', (text, expected) => {
    expect(withoutCredentials(text)).toBe(expected);
  });

  /** A pattern whose time grows with the square of a word's length would take minutes over these. */
  it.each([
    ['a word', 'z'.repeat(1_000_000)],
    ['schemes', 'a://'.repeat(250_000)],
    ['at signs', `x://${'@'.repeat(1_000_000)} `],
    ['a host', `x://${'z'.repeat(1_000_000)}`],
  ])('looks through %s of a million characters', (_, text) => {
    expect(withoutCredentials(text).length).toBeLessThanOrEqual(text.length);
  });
});

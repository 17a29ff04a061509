import { expect, it } from 'vitest';
import { coversAnyCommand, coversScope, keyRefusal } from '../../../../src/core/control/key-ring.ts';
import { NOW_MS, person } from './keys.fixture.ts';

it.each([
  [['policy/feed'], 'policy/feed', true],
  [['policy/feed'], 'policy/feed-2', false],
  [['policy/feed'], 'policy/fee', false],
  [['policy/*'], 'policy/feed', true],
  [['policy/*'], 'keys', false],
  [['policy/fe*'], 'policy/feed', true],
  [['*'], 'keys', true],
  [['keys', 'policy/feed'], 'policy/feed', true],
  [[], 'policy/feed', false],
])('a key for %j covers %s: %s', (patterns, scope, covers) => {
  expect(coversScope(patterns, scope)).toBe(covers);
});

it.each([
  ['*', true],
  ['keys', true],
  ['policy/feed', true],
  ['policy/*', true],
  ['policy/fe*', true],
  ['model/*', true],
  ['model/ranker', true],
  ['p*', true],
  ['foo', false],
  ['foo/*', false],
  ['policy', false],
  ['policy/', false],
  ['policy/a/b', false],
  ['keys/*', false],
  ['feed*', false],
])('some command has a scope that %s covers: %s', (pattern, covers) => {
  expect(coversAnyCommand(pattern)).toBe(covers);
});

it.each([
  ['from its first moment on', { notBefore: NOW_MS }, true],
  ['not before', { notBefore: NOW_MS + 1 }, false],
  ['until the moment before its last', { notAfter: NOW_MS + 1 }, true],
  ['not in its last', { notAfter: NOW_MS }, false],
])('a key signs %s', (_, fields, may) => {
  const { key } = person('ana', fields);
  expect(keyRefusal(key, { scope: 'policy/feed', type: 'START' }, NOW_MS) === undefined).toBe(may);
});

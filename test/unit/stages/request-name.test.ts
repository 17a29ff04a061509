import { expect, it } from 'vitest';
import type { InboundRecord } from '../../../src/ports/message-bus.ts';
import { requestName } from '../../../src/stages/request-name.ts';

function recordWith(key: Buffer | null): InboundRecord {
  return {
    topic: 't',
    partition: 3,
    offset: 42,
    timestampMs: 0,
    key,
    value: null,
    headers: {},
    assignment: 1,
  };
}

it.each<[what: string, requestId: string | undefined, key: Buffer | null, name: string]>([
  ['its own', 'r1', Buffer.from('k'), 'r1'],
  ['its own, though it is empty', '', Buffer.from('k'), ''],
  ['its own, though it is longer than allowed', 'r'.repeat(1_024), Buffer.from('k'), 'r'.repeat(1_024)],
  ['the key where its own would burst a result', 'r'.repeat(1_025), Buffer.from('k'), 'k'],
  ['the key, counted in bytes', 'é'.repeat(513), Buffer.from('k'), 'k'],
  ['the key where it cannot be read', undefined, Buffer.from('käse'), 'käse'],
  ['its place without a key', undefined, null, 't/3/42'],
  ['its place where the key is empty', undefined, Buffer.alloc(0), 't/3/42'],
  ['its place where the key is too long', undefined, Buffer.alloc(129, 'k'), 't/3/42'],
  ['its place where the key is no UTF-8', undefined, Buffer.from([0xc3, 0x28]), 't/3/42'],
  ['its place where the key has control characters', undefined, Buffer.from('a\nb'), 't/3/42'],
])('a request is named by %s', (_, requestId, key, name) => {
  expect(requestName(requestId, recordWith(key))).toBe(name);
});

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findRedisServer, isRecentRedis } from '../../../src/local-stack/redis.ts';
import { temporaryFolder, writeProgram } from './temporary-folder.ts';

describe('isRecentRedis', () => {
  it.each([
    ['Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d', true],
    ['Redis server v=6.2.0 sha=00000000:0', true],
    ['Redis server v=6.0.16 sha=00000000:0', false],
    ['Redis server v=5.0.14', false],
    ['Redis server v=10.0.0', true],
    ['', false],
  ])('of %j is %s', (output, expected) => {
    expect(isRecentRedis(output)).toBe(expected);
  });
});

describe('findRedisServer', () => {
  it.each([
    ['a recent one', '#!/bin/sh\necho "Redis server v=7.0.15 sha=0"\n', true],
    ['not an old one', '#!/bin/sh\necho "Redis server v=5.0.14 sha=0"\n', false],
    ['not one that fails', '#!/bin/sh\nexit 127\n', false],
  ])('takes %s from the PATH', async (_, script, found) => {
    const folder = await temporaryFolder();
    const command = await writeProgram(join(folder, 'redis-server'), script);
    expect(await findRedisServer({ PATH: folder })).toBe(found ? command : undefined);
  });
});

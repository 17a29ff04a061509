import { spawnSync } from 'node:child_process';
import { access, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as tick } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { isRunning, withFileLock } from '../../../src/local-stack/file-lock.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** The pid of a process that has ended. */
function deadPid(): number {
  return spawnSync('/bin/sh', ['-c', 'exit 0']).pid;
}

describe('withFileLock', () => {
  it('lets in one at a time', async () => {
    const path = join(await temporaryFolder(), 'folder/lock');
    let inside = 0;
    let most = 0;
    const action = async () => {
      inside += 1;
      most = Math.max(most, inside);
      await tick();
      await access(path);
      inside -= 1;
    };
    await Promise.all(Array.from({ length: 8 }, () => withFileLock(path, action)));
    expect(most).toBe(1);
    expect(await readdir(join(path, '..'))).toEqual([]);
  });

  it('is open again after an error, which it passes on', async () => {
    const path = join(await temporaryFolder(), 'lock');
    const failing = withFileLock(path, async () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
    expect(await withFileLock(path, async () => 'yes')).toBe('yes');
  });

  it.each([
    ['a process that has died', () => String(deadPid())],
    ['nobody', () => ''],
  ])('takes over the lock of %s', async (_, owner) => {
    const path = join(await temporaryFolder(), 'lock');
    await writeFile(path, owner());
    expect(await withFileLock(path, async () => 'mine')).toBe('mine');
  });
});

describe('isRunning', () => {
  it('tells a process from the pid of one that has ended', () => {
    expect(isRunning(process.pid)).toBe(true);
    expect(isRunning(deadPid())).toBe(false);
  });
});

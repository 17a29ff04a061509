import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_INTERVAL_MS = 200;

/**
 * Runs `action` while this process holds the lock file, which names its pid. The lock of a process that has died
 * is taken over. Two processes may in rare cases take over the same dead lock at once: it spares double
 * work, and what it guards must itself be safe against that.
 */
export async function withFileLock<T>(path: string, action: () => Promise<T>): Promise<T> {
  await mkdir(dirname(path), { recursive: true });
  while (!(await tryLock(path))) {
    await sleep(POLL_INTERVAL_MS);
  }
  try {
    return await action();
  } finally {
    await rm(path, { force: true });
  }
}

async function tryLock(path: string): Promise<boolean> {
  const claim = `${path}.${randomUUID()}`;
  await writeFile(claim, String(process.pid));
  try {
    await link(claim, path); // the lock appears with its content, or not at all
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    await removeDeadLock(path);
    return false;
  } finally {
    await rm(claim, { force: true });
  }
}

async function removeDeadLock(path: string): Promise<void> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return; // released meanwhile
  const owner = Number(text);
  if (!(owner > 0 && isRunning(owner))) await rm(path, { force: true });
}

/** Whether a process of this pid exists. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

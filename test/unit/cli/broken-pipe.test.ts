import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { packageRoot } from '../../../src/config/package-root.ts';

const CLI = join(packageRoot(), 'src', 'cli', 'main.ts');
type Closed = readonly ('stdout' | 'stderr')[];

/** Runs `millrace <args>` with nobody at the other end of some of its outputs. */
async function unread(closed: Closed, args: readonly string[]) {
  const child = spawn(process.execPath, [CLI, ...args], {
    cwd: packageRoot(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const name of closed) child[name].destroy();
  const read = (name: Closed[number]): Promise<string> =>
    closed.includes(name) ? Promise.resolve('') : text(child[name]);
  const [out, err, [exitCode, signal]] = await Promise.all([
    read('stdout'),
    read('stderr'),
    once(child, 'exit'),
  ]);
  return { out, err, exitCode, signal };
}

const SCORE = ['score', 'examples/requests/ranker.json'];

it.each<[Closed, readonly string[], number, RegExp]>([
  [['stdout'], ['config', 'show'], 0, /^$/],
  [['stdout'], SCORE, 0, /^$/],
  [['stderr'], SCORE, 0, /candidate/],
  [['stderr'], ['frobnicate'], 2, /^$/],
  [['stderr', 'stdout'], SCORE, 0, /^$/],
])(
  'whose %s nobody reads, %s ends with exit code %i and without a stack trace',
  async (closed, args, code, printed) => {
    const { out, err, exitCode, signal } = await unread(closed, args);
    expect({ exitCode, signal }).toEqual({ exitCode: code, signal: null });
    expect(out).toMatch(printed);
    expect(err).not.toMatch(/\n {4}at |EPIPE|not foreseen/);
  },
);

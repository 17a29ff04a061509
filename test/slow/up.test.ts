import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/config/package-root.ts';
import { eventually } from './real-pipeline.ts';

let up: ChildProcessWithoutNullStreams | undefined;

afterEach(async () => {
  if (up === undefined || up.exitCode !== null) return;
  up.kill('SIGTERM');
  await once(up, 'exit');
});

/** Runs before the command does: a signal makes it throw where nobody catches. */
const FAULT = `data:text/javascript,${encodeURIComponent(`
  process.on('SIGUSR2', () => setTimeout(() => { throw new TypeError('planted') }));
`)}`;

/** Runs `millrace up` where no file may grow: what its disk is like when it is full. */
function startUp(): { child: ChildProcessWithoutNullStreams; out: () => string; err: () => string } {
  const main = join(packageRoot(), 'src', 'cli', 'main.ts');
  const command = [process.execPath, '--import', FAULT, main, 'up', '--json'];
  const child = spawn('sh', ['-c', 'ulimit -f 0; exec "$@"', 'sh', ...command], {
    env: {
      ...process.env,
      // It would be cut short as well.
      NODE_DISABLE_COMPILE_CACHE: '1',
      MILLRACE_PREFIX: `up${process.pid}`,
      MILLRACE_FLEET: 'examples/fleets/one-pool.yaml',
      MILLRACE_POLICY: 'examples/policies/one-pool.yaml',
    },
  });
  up = child;
  let out = '';
  let err = '';
  child.stdout.on('data', (text: Buffer) => {
    out += text.toString();
  });
  child.stderr.on('data', (text: Buffer) => {
    err += text.toString();
  });
  return { child, out: () => out, err: () => err };
}

const answers = async (url: string): Promise<boolean> =>
  (await fetch(`${url}/livez`).catch(() => undefined))?.ok === true;

async function allReady({ child, out, err }: ReturnType<typeof startUp>): Promise<string[]> {
  await eventually(() => out().split('\n').length > 4 || child.exitCode !== null, 'all are ready', 120_000);
  const urls = [...out().matchAll(/"url":"([^"]+)"/g)].map(([, url]) => url ?? '');
  expect(urls, err()).toHaveLength(4);
  return urls;
}

describe('millrace up', () => {
  it('goes on where its disk takes no more, with every service, and says what is lost', async () => {
    const running = startUp();
    const { child, err } = running;
    const urls = await allReady(running);
    for (const name of ['policy-controller-1', 'cpu-1', 'request-router-1', 'feature-extractor-1']) {
      const lost = `millrace: the log of ${name} cannot be written: it would be larger than a file may be here`;
      expect(err().split(lost)).toHaveLength(2);
    }
    expect(await Promise.all(urls.map(answers))).toEqual([true, true, true, true]);
    child.kill('SIGTERM');
    const [exitCode] = await once(child, 'exit');
    expect(exitCode, err()).toBe(0);
  });

  it('that has a fault of its own leaves no service behind', async () => {
    const running = startUp();
    const urls = await allReady(running);
    running.child.kill('SIGUSR2');
    const [exitCode] = await once(running.child, 'exit');
    expect(exitCode).toBe(1);
    expect(running.err()).toContain('millrace: planted\n');
    await eventually(async () => !(await Promise.all(urls.map(answers))).includes(true), 'all are gone');
  });
});

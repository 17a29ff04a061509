import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { temporaryFolder, writeProgram } from './temporary-folder.ts';

const LAUNCHER = join(import.meta.dirname, '../../../bin/millrace.js');
/** Says what it was given and which Node runs it; then as its first argument asks. */
const MAIN = `
const [what, value] = process.argv.slice(2);
if (what === 'exit') process.exitCode = Number(value);
else if (what === 'die') process.kill(process.pid, value);
else if (what === 'wait') {
  let signals = 0;
  process.on(value, () => { signals += 1; setTimeout(() => { console.log(signals); process.exit(7); }, 200); });
  setInterval(() => undefined, 1_000);
  console.log('waiting');
} else if (what === 'read') process.stdin.pipe(process.stdout);
else console.log(JSON.stringify({ args: process.argv.slice(2), main: process.argv[1] }));
`;

interface Layout {
  root: string;
  launcher: string;
}

/** A package folder with the launcher and, as asked, a source or a compiled main. */
async function layOut(kind: 'clone' | 'install' | 'bare'): Promise<Layout> {
  const folder = await temporaryFolder();
  const root = kind === 'install' ? join(folder, 'node_modules/millrace') : folder;
  const launcher = join(root, 'bin/millrace.js');
  const write = async (path: string, content: string) => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
  };
  await write('package.json', '{ "type": "module" }');
  await mkdir(dirname(launcher), { recursive: true });
  await copyFile(LAUNCHER, launcher);
  if (kind === 'clone') await write('src/cli/main.ts', `const typed: number = 1;\nvoid typed;\n${MAIN}`);
  // An install has the sources of nothing, but a package manager may link one that has: it must not be run there.
  if (kind === 'install') await write('src/cli/main.ts', 'throw new Error("source");');
  if (kind === 'install') await write('dist/src/cli/main.js', MAIN);
  return { root, launcher };
}

interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  output: string;
  errors: string;
}

/** Runs the launcher in a Node that says to be of `version`. */
async function launch(
  { launcher }: Layout,
  args: readonly string[],
  options: { version?: string; input?: string; signals?: readonly NodeJS.Signals[] } = {},
): Promise<Ended> {
  const versions = `{ ...process.versions, node: '${options.version}' }`;
  const pretend = `data:text/javascript,Object.defineProperty(process, 'versions', { value: ${versions} })`;
  const flags = options.version === undefined ? [] : ['--import', pretend];
  const child = spawn(process.execPath, [...flags, launcher, ...args], { stdio: 'pipe' });
  child.stdin.end(options.input ?? '');
  const output = text(child.stdout);
  const errors = text(child.stderr);
  const exit = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  if (options.signals !== undefined) {
    await once(child.stdout, 'data');
    for (const signal of options.signals) child.kill(signal);
  }
  const [code, signal] = await exit;
  return { code, signal, output: await output, errors: await errors };
}

describe('bin/millrace.js', () => {
  it('runs the source in a clone, with the arguments as they are', async () => {
    const clone = await layOut('clone');
    const { code, output, errors } = await launch(clone, ['a b', '--flag', '']);
    const main = join(clone.root, 'src/cli/main.ts');
    expect({ code, errors }).toEqual({ code: 0, errors: '' });
    expect(JSON.parse(output)).toEqual({ args: ['a b', '--flag', ''], main });
  });

  it('runs what was compiled in an install', async () => {
    const install = await layOut('install');
    const { output } = await launch(install, ['x']);
    expect(JSON.parse(output)).toEqual({ args: ['x'], main: join(install.root, 'dist/src/cli/main.js') });
  });

  it('passes on standard input, exit code and death by a signal', async () => {
    const clone = await layOut('clone');
    expect(await launch(clone, ['read'], { input: 'through' })).toMatchObject({ code: 0, output: 'through' });
    expect(await launch(clone, ['exit', '3'])).toMatchObject({ code: 3, signal: null });
    expect(await launch(clone, ['die', 'SIGTERM'])).toMatchObject({ code: null, signal: 'SIGTERM' });
    expect(await launch(clone, ['die', 'SIGKILL'])).toMatchObject({ code: null, signal: 'SIGKILL' });
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'forwards %s once, and waits for what becomes of it',
    async (signal) => {
      const clone = await layOut('clone');
      const ended = await launch(clone, ['wait', signal], { signals: [signal, signal] });
      expect(ended).toMatchObject({ code: 7, signal: null });
      expect(ended.output).toMatch(/1\n$/);
    },
  );

  it.each([
    ['clone', '20.19.0'],
    ['clone', '22.21.1'],
    ['install', '22.21.1'],
  ] as const)('looks for a packaged Node where a %s is run by %s', async (kind, version) => {
    const layout = await layOut(kind);
    const packaged = join(
      layout.root,
      kind === 'clone' ? '.' : '..',
      kind === 'clone' ? 'node_modules' : '',
      'node/bin/node',
    );
    await writeProgram(packaged, '#!/bin/sh\necho packaged "$@"\n');
    const { code, output } = await launch(layout, ['x'], { version });
    expect(code).toBe(0);
    expect(output).toMatch(/^packaged .*main\.[tj]s x\n$/);
  });

  it.each([
    ['clone', '22.22.0'],
    ['clone', '24.0.0'],
    ['install', '22.22.0'],
  ] as const)('runs a %s in Node %s itself', async (kind, version) => {
    const layout = await layOut(kind);
    const { code, output } = await launch(layout, ['x'], { version });
    expect(code).toBe(0);
    expect(JSON.parse(output)).toMatchObject({ args: ['x'] });
  });

  it.each([
    [
      'clone',
      /^millrace: Node >= 22\.22 is needed, this is 20\.19\.0: install .*, or run npm install in \S+\n$/,
    ],
    ['install', /^millrace: Node >= 22\.22 is needed, this is 20\.19\.0: install a newer one\n$/],
  ] as const)('says in one line what is needed where a %s has no Node for it', async (kind, line) => {
    const { code, output, errors } = await launch(await layOut(kind), ['x'], { version: '20.19.0' });
    expect({ code, output }).toEqual({ code: 1, output: '' });
    expect(errors).toMatch(line);
  });

  it('needs what package.json and the docs say, and no dependency asks for more', () => {
    const needed = /"node": ">=([\d.]+)"/.exec(readFileSync('package.json', 'utf8'))?.[1] ?? '';
    const [major, minor] = needed.split('.').map(Number);
    expect(readFileSync('bin/millrace.js', 'utf8')).toContain(`minimum = [${major}, ${minor}];`);
    for (const page of ['README.md', 'docs/operations.md'])
      expect(readFileSync(page, 'utf8')).toMatch(
        new RegExp(`^- Node ≥ ${needed.replace('.', '\\.')}[.:]`, 'm'),
      );
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
      packages: Record<string, { dev?: boolean; engines?: { node?: string } }>;
    };
    for (const [name, { dev, engines }] of Object.entries(packages)) {
      if (dev === true) continue;
      const [, asked = '0', askedMinor = '0'] = />= ?(\d+)\.(\d+)/.exec(engines?.node ?? '') ?? [];
      const isMore =
        Number(asked) > (major ?? 0) || (Number(asked) === major && Number(askedMinor) > (minor ?? 0));
      expect([name, isMore]).toEqual([name, false]);
    }
  });

  it('says in one line that there is nothing to run', async () => {
    const { code, errors } = await launch(await layOut('bare'), ['x']);
    expect(code).toBe(1);
    expect(errors).toMatch(/^millrace: \S+main\.js is missing.*\n$/);
  });
});

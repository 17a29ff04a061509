import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { packaged, packageRoot } from '../../../src/config/package-root.ts';
import { readUserFile, writeUserFile, writeUserFiles } from '../../../src/config/user-file.ts';

describe('the package’s own files', () => {
  it('are found from its root', () => {
    expect(existsSync(join(packageRoot(), 'package.json'))).toBe(true);
    expect(existsSync(packaged('', 'models', 'repository'))).toBe(true);
    expect(packaged('/mine', 'models')).toBe('/mine');
  });

  it('stand in for examples that the folder at hand lacks', () => {
    const here = process.cwd();
    process.chdir('/');
    try {
      expect(readUserFile('examples/policies/starter.yaml').toString()).toContain('name: starter');
      expect(() => readUserFile('policies/starter.yaml')).toThrow(
        /there is none of this name.*policies\/starter/,
      );
    } finally {
      process.chdir(here);
    }
  });

  it('are told apart from folders', () => {
    expect(() => readUserFile('examples')).toThrow(/it is a folder/);
  });
});

describe('a file that the user named', () => {
  it.each([
    ['/no/such.yaml', /cannot be read: there is none of this name .*Correct the path/],
    ['package.json/x', /cannot be read: a part of its path is no folder/],
    ['examples', /cannot be read: it is a folder .*Name a file in it/],
  ])('%s says why it cannot be read, and what to do', (file, message) => {
    expect(() => readUserFile(file)).toThrow(message);
    expect(() => readUserFile(file)).not.toThrow(/ENO|EIS/);
  });

  it('says why it cannot be written, and what to do', () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-files-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    expect(() => writeUserFile(join(folder, 'a', 'b'), 'x')).toThrow(
      /its folder does not exist .*Make the folder/,
    );
    expect(() => writeUserFile(folder, 'x')).toThrow(/cannot be written: it is a folder/);
    const file = join(folder, 'key');
    writeUserFile(file, 'one', { mode: 0o600, isNew: true });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(() => writeUserFile(file, 'two', { isNew: true })).toThrow(/is never overwritten/);
    writeUserFile(file, 'three');
    expect(readFileSync(file, 'utf8')).toBe('three');
  });

  it.each([
    ['new', { isNew: true }, undefined],
    ['one that may be written over', {}, undefined],
    ['one that is there', {}, 'before'],
  ])('(%s) is left as it was where its disk takes no more', (_, options, before) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-files-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'key');
    if (before !== undefined) writeFileSync(file, before);
    const { stdout } = withinBytes(512, [file, 'x'.repeat(4_096), JSON.stringify(options)]);
    expect(stdout).toMatch(/cannot be written: it would be larger than a file may be here .*ulimit/);
    expect(readdirSync(folder)).toEqual(before === undefined ? [] : ['key']);
    if (before === undefined) writeUserFile(file, 'again', options);
    else expect(readFileSync(file, 'utf8')).toBe(before);
  });

  it.each([
    ['new', { isNew: true }, undefined],
    ['one that may be written over', {}, undefined],
    ['one that is there', {}, 'before'],
  ])(
    '(%s) has no half of itself under its name where the process is ended meanwhile',
    (_, options, before) => {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-files-'));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const file = join(folder, 'key');
      if (before !== undefined) writeFileSync(file, before);
      const script = `
      import fs from 'node:fs';
      import { syncBuiltinESMExports } from 'node:module';
      const write = fs.writeFileSync;
      fs.writeFileSync = (to, contents) => {
        write(to, contents.slice(0, 2));
        process.kill(process.pid, 'SIGKILL');
      };
      syncBuiltinESMExports();
      const { writeUserFile } = await import('${packageRoot()}/src/config/user-file.ts');
      writeUserFile(${JSON.stringify(file)}, 'whole', ${JSON.stringify(options)});`;
      const { signal } = spawnSync(process.execPath, ['--input-type=module', '-e', script]);
      expect(signal).toBe('SIGKILL');
      expect(existsSync(file) ? readFileSync(file, 'utf8') : undefined).toBe(before);
    },
  );

  it('never takes the name from what a link without an end has', () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-files-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    symlinkSync('nowhere', join(folder, 'link'));
    expect(() => writeUserFile(join(folder, 'link'), 'x')).toThrow(/it is there already/);
    expect(readdirSync(folder)).toEqual(['link']);
  });

  it('keeps its rights, and the link that leads to it, when it is written over', () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-files-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'key');
    writeFileSync(file, 'before', { mode: 0o640 });
    symlinkSync('key', join(folder, 'link'));
    writeUserFile(join(folder, 'link'), 'after');
    expect(readFileSync(file, 'utf8')).toBe('after');
    expect(statSync(file).mode & 0o777).toBe(0o640);
    expect(readdirSync(folder).sort()).toEqual(['key', 'link']);
  });

  it('comes with the others of its folder, or none does', () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-files-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const place = join(folder, 'a', 'b');
    expect(writeUserFiles(place, new Map([['one', '1']]))).toEqual([join(place, 'one')]);
    const two = new Map([
      ['one', 'again'],
      ['none/two', '2'],
    ]);
    expect(() => writeUserFiles(place, two)).toThrow(
      /the files cannot be written: its folder does not exist/,
    );
    expect(readdirSync(place)).toEqual(['one']);
  });

  it('may be no file', () => {
    expect(() => writeUserFile('/dev/null', 'x')).not.toThrow();
    expect(() => writeUserFile('/dev/full', 'x')).toThrow(/its disk is full .*Make room/);
  });
});

/** Writes a user file in a process whose files cannot grow past so many bytes. */
function withinBytes(bytes: number, args: readonly string[]): { stdout: string } {
  const program = `
    import { writeUserFile } from '${join(packageRoot(), 'src/config/user-file.ts')}';
    const [file, text, options] = process.argv.slice(1);
    try { writeUserFile(file, text, JSON.parse(options)); } catch (error) { console.log(error.message); }`;
  const node = [process.execPath, '--input-type=module', '--eval', program, ...args];
  // In blocks of 512 bytes.
  return spawnSync('sh', ['-c', `ulimit -f ${bytes / 512}; exec "$@"`, 'sh', ...node], { encoding: 'utf8' });
}

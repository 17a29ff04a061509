import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../../../src/config/package-root.ts';
import { writeGraph } from '../../../src/inference/onnx-file/write-graph.ts';
import { crossNetwork } from '../inference/rocs/models.ts';
import { temporaryFolder } from './temporary-folder.ts';

const CLI = join(packageRoot(), 'bin', 'millrace.js');
const LIMIT_MS = 60_000;

/** Runs `millrace <args>` as a process whose files cannot grow past so many blocks of 512 bytes. */
function within(blocks: number, args: readonly string[]): { err: string; exitCode: number | null } {
  // Its caches would be cut short as well.
  const env = { ...process.env, NODE_COMPILE_CACHE: '', NODE_DISABLE_COMPILE_CACHE: '1' };
  const command = ['-c', `ulimit -f ${blocks}; exec "$@"`, 'sh', process.execPath, CLI, ...args];
  const { stderr, status } = spawnSync('sh', command, { encoding: 'utf8', env });
  return { err: stderr, exitCode: status };
}

/** 100 000 values: the first part of them is written while the source is still being read. */
function manyItems(): string {
  const lines = Array.from({ length: 5_000 }, (_, i) =>
    [i, ...Array.from({ length: 60 }, () => 1)].join(','),
  );
  return [['id', ...Array.from({ length: 60 }, (_, i) => `f_${i}`)].join(','), ...lines, ''].join('\n');
}

describe('a command whose disk takes no more', () => {
  it.each<[string, number, (place: ReturnType<typeof temporaryFolder>) => string[]]>([
    ['policy keygen', 0, ({ path }) => ['--out', path('out/key.pem'), 'ana']],
    [
      'control send',
      0,
      ({ path }) => ['--type', 'HOLD', '--scope', 'policy/starter', '--out', path('out/hold.json')],
    ],
    ['items build', 0, ({ path, write }) => items(path('out'), write('items.csv', 'id,f_0\na,1\n'))],
    ['items build', 100, ({ path, write }) => items(path('out'), write('items.csv', manyItems()))],
    [
      'model compile',
      1,
      ({ path }) => {
        writeFileSync(path('model.onnx'), writeGraph(crossNetwork(24, 8, 1).graph));
        const sides = ['--request-inputs', 'user', '--candidate-inputs', 'item', '--no-measure'];
        return [path('model.onnx'), ...sides, '--out', path('out')];
      },
    ],
  ])(
    '(%s, %i blocks) says so in words, with exit code 2, and leaves nothing',
    (name, blocks, argsIn) => {
      const place = temporaryFolder();
      const out = place.path('out');
      mkdirSync(out);
      const { err, exitCode } = within(blocks, [...name.split(' '), ...argsIn(place)]);
      expect(err).toMatch(
        /^millrace: .* cannot be written: it would be larger than a file may be here .*ulimit/m,
      );
      expect(err).not.toContain('not foreseen');
      expect(exitCode).toBe(2);
      expect(readdirSync(out)).toEqual([]);
    },
    LIMIT_MS,
  );

  it(
    'says so of standard output',
    () => {
      const full = openSync('/dev/full', 'w');
      const { stderr, status } = spawnSync(process.execPath, [CLI, 'config', 'show'], {
        encoding: 'utf8',
        stdio: ['ignore', full, 'pipe'],
      });
      closeSync(full);
      expect(stderr).toMatch(
        /^millrace: the output cannot be written: its disk is full .*standard output.*\n$/,
      );
      expect(status).toBe(1);
    },
    LIMIT_MS,
  );
});

function items(output: string, input: string): string[] {
  return ['--input', input, '--id', 'id', '--prefix', 'f_', '--table', 'catalogue', '--output', output];
}

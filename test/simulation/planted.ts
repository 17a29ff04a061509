import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PLANTED_BUGS, type PlantedBug } from './planted-bugs.ts';

/**
 * `node test/simulation/planted.ts [--only part of a name]… [--seeds n] [--starts n] [--unit]`: plants each bug in a copy of the source tree, and runs
 * random fault schedules there until one fails, from several seeds on. Says how many schedules that took, or, with `--unit`, whether the unit tests of the
 * pipeline pass on it all the same.
 */
const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [''] },
    seeds: { type: 'string', default: '400' },
    starts: { type: 'string', default: '5' },
    unit: { type: 'boolean', default: false },
  },
});

/** What runs in the copy; the dependencies are those of this tree. */
const COPIED = [
  ...['src', 'test', 'models', 'schemas', 'examples', 'bin', 'docs', 'services', 'deploy', 'bench'],
  ...[
    'package.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'vitest.config.ts',
    'docker-compose.yml',
    'README.md',
  ],
];
const UNIT_TESTS = ['core', 'stages', 'wiring', 'client'].map((folder) => `test/unit/${folder}`);
/** Starting seeds lie so far apart. */
const APART = 10_000;
/** A bug may make a run hang: that is found as well. */
const HANGS_MS = 240_000;

const isTried = ({ name }: PlantedBug): boolean => values.only.some((part) => name.includes(part));

function copyTree(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-planted-'));
  for (const each of COPIED) cpSync(each, join(folder, each), { recursive: true });
  symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

function plant(folder: string, { name, file, from, to }: PlantedBug): () => void {
  const path = join(folder, 'src', file);
  const source = readFileSync(path, 'utf8');
  const places = source.split(from).length - 1;
  if (places !== 1)
    throw new Error(`"${name}": its text is ${places} times in src/${file}, and must be once`);
  writeFileSync(
    path,
    source.replace(from, () => to),
  );
  return () => writeFileSync(path, source);
}

/** Schedules until the first that failed, one figure per start; Infinity where none did. */
function schedulesUntilFound(folder: string): number[] {
  const seeds = Number(values.seeds);
  const starts = Array.from({ length: Number(values.starts) }, (_, n) => 1 + n * APART);
  const args = [
    'test/simulation/schedule-sweep.ts',
    '--until-failure',
    starts.join(','),
    '--seeds',
    `${seeds}`,
  ];
  const { stdout, signal, stderr } = spawnSync(process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    timeout: HANGS_MS,
  });
  const found = [...stdout.matchAll(/^took (\d+|-)/gm)].map(([, took]) =>
    took === '-' ? Number.POSITIVE_INFINITY : Number(took),
  );
  if (found.length < starts.length && signal === null) throw new Error(`the sweep did not run: ${stderr}`);
  return [...found, ...starts.slice(found.length).map(() => 1)];
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor((figures.length - 1) / 2)] ?? Number.NaN;
}

/** The names of the first tests that fail. */
function failingUnitTests(folder: string): string {
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--project',
    'unit',
    '--maxWorkers=1',
    '--bail=1',
    ...UNIT_TESTS,
  ];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    timeout: HANGS_MS,
  });
  if (status === 0) return 'pass';
  return `fail: ${/FAIL +(?<test>.*)/.exec(stdout + stderr)?.groups?.['test'] ?? 'in time'}`;
}

const folder = copyTree();
let missed = 0;
try {
  if (values.unit) console.log(`without a bug | unit tests ${failingUnitTests(folder)}`);
  for (const bug of PLANTED_BUGS.filter(isTried)) {
    const unplant = plant(folder, bug);
    if (values.unit) console.log(`${bug.name} | unit tests ${failingUnitTests(folder)}`);
    else {
      const took = schedulesUntilFound(folder);
      const found = took.filter((seeds) => seeds < Number.POSITIVE_INFINITY).length;
      if (found === 0) missed += 1;
      console.log(
        `${bug.name} | found from ${found} of ${took.length} | ${median(took)} | ${took.join(' ')}`,
      );
    }
    unplant();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(`${PLANTED_BUGS.length} bugs in the table, ${missed} of those tried not found`);
process.exitCode = missed === 0 ? 0 : 1;

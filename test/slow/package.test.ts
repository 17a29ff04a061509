import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);
const clone = join(import.meta.dirname, '../..');

/** What the clone, its scripts and its tests set; the machine's own (a proxy, certificates, a registry) is what npm needs. */
const OF_THE_CLONE =
  /^(MILLRACE_|npm_(?!config_registry)|VITEST|NODE_OPTIONS|NODE_PATH|NODE_ENV|INIT_CWD|CI$|FORCE_COLOR)/;

/** The Node of the tests, whatever is installed; nothing of the clone's own environment. */
const environment: NodeJS.ProcessEnv = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !OF_THE_CLONE.test(name))),
  PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
  NO_COLOR: '1',
};

/** A small program as a user would write it. */
const PROGRAM = `
import { connect, embedded, fp32, int64, kafka, MillraceError, readFp32, readIds, type ScoredResult, type Transport } from 'millrace';

const far: Transport = kafka({ brokers: ['127.0.0.1:1'], registryUrl: 'http://127.0.0.1:2', sasl: { mechanism: 'plain', username: 'u', password: 'p' } });
void far;
const client = await connect({ transport: embedded({ seed: 1 }) });
const results = client.results();
const result: ScoredResult = await client.score({
  model: 'ranker',
  deadlineMs: 60_000,
  baselineCandidates: 2,
  candidateIds: int64('ids', [1001, 1002n]),
  requestTensors: [fp32('user', [64], new Float32Array(64))],
  candidateTensors: [fp32('item', [2, 32], Float32Array.from({ length: 64 }, (_, i) => Math.sin(i)))],
}, { signal: AbortSignal.timeout(60_000) });
// @ts-expect-error: a result has no such field
void result.nope;
try {
  // @ts-expect-error: brokers are needed
  kafka({ registryUrl: '' });
  kafka({ brokers: ['no port'], registryUrl: '' });
} catch (error) {
  if (error instanceof MillraceError) console.log(JSON.stringify({ code: error.code }));
}
const ids: string[] = result.candidateIds === null ? [] : readIds(result.candidateIds);
console.log(JSON.stringify({ outcome: result.outcome, ids, scores: [...readFp32(result.scores)] }));
for await (const { result: seen } of results) {
  console.log(JSON.stringify({ seen: seen.requestId === result.requestId }));
  break;
}
await client.close();
`;

/** Of a folder that has nothing but the package: Node's types come with it. */
const TSCONFIG = {
  compilerOptions: {
    target: 'es2023',
    module: 'nodenext',
    strict: true,
    skipLibCheck: false,
    outDir: 'out',
  },
  files: ['use.ts'],
};

let folder: string;
/** What the tarball holds, by path. */
let packed: string[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-package-'));
  const pack = await run('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: clone,
    env: environment,
  });
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? 'none';
  // npm prints what prepack prints before its own JSON.
  packed = [...pack.stdout.matchAll(/"path": "([^"]+)"/g)].map((match) => match[1] ?? '');
  const { version } = JSON.parse(readFileSync(join(clone, 'package.json'), 'utf8'));
  expect(tarball).toBe(`millrace-${version}.tgz`);
  mkdirSync(join(folder, 'project'));
  writeFileSync(join(folder, 'project/package.json'), '{"name":"consumer","private":true,"type":"module"}');
  // Install scripts fetch accelerator libraries that nothing here needs.
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];
  await run('npm', ['install', ...options, join(folder, tarball)], {
    cwd: join(folder, 'project'),
    env: environment,
  });
}, 600_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function inProject(command: string, args: readonly string[]) {
  return run(command, [...args], { cwd: join(folder, 'project'), env: environment, maxBuffer: 16 * 2 ** 20 });
}

describe('the packed package', () => {
  it.each([
    'bin/millrace.js',
    'dist/src/wiring/sdk.js',
    'dist/src/wiring/sdk.d.ts',
    'dist/src/cli/main.js',
    'dist/services/request-router/main.js',
    'schemas/score-request.v1.avsc',
    'schemas/open-inference.proto',
    'models/repository/ranker/1/model.onnx',
    'models/catalogue/items.json',
    'examples/requests/ranker.json',
    'examples/policies/starter.yaml',
    'docs/cli.md',
    'docker-compose.yml',
    'LICENSE',
    'NOTICE',
    'README.md',
    'package.json',
  ])('holds %s', (path) => {
    expect(packed).toContain(path);
  });

  it('holds no tests, benchmarks, training code or sources', () => {
    const foreign = packed.filter(
      (path) =>
        /^(test|bench|src|services|node_modules|\.)/.test(path) ||
        /^models\/.*\.py$/.test(path) ||
        (path.endsWith('.ts') && !path.endsWith('.d.ts') && !path.startsWith('examples/')),
    );
    expect(foreign).toEqual([]);
  });

  it('has types that hold without skipLibCheck, and runs a program that uses them', async () => {
    const project = join(folder, 'project');
    writeFileSync(join(project, 'use.ts'), PROGRAM);
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(TSCONFIG));
    const compiled = await inProject(process.execPath, [
      join(clone, 'node_modules/typescript/bin/tsc'),
      '-p',
      '.',
    ]).catch((error: { stdout: string }) => error);
    expect(compiled.stdout).toBe('');
    const { stdout } = await inProject(process.execPath, ['out/use.js']);
    const [refused, scored, seen] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(refused).toEqual({ code: 'INVALID_CONFIG' });
    expect(scored).toMatchObject({ outcome: 'SCORED', ids: ['1001', '1002'] });
    for (const score of scored.scores) expect(score).toBeGreaterThan(0);
    expect(seen).toEqual({ seen: true });
  });

  it('scores the example with `npx millrace`, whether it lies in the folder or not', async () => {
    const args = ['millrace', 'score', 'examples/requests/ranker.json', '--json'];
    const packaged = JSON.parse((await inProject('npx', args)).stdout);
    expect(packaged).toMatchObject({ transport: 'embedded', outcome: 'SCORED', candidatesScored: 8 });
    const scores: number[] = packaged.candidates.map(({ score }: { score: number }) => score);
    expect(scores).toEqual(scores.toSorted((a, b) => b - a));
    expect(new Set(scores).size).toBe(8);
    for (const score of scores) expect(score).toBeGreaterThan(0);
    cpSync(join(clone, 'examples'), join(folder, 'project/examples'), { recursive: true });
    expect(JSON.parse((await inProject('npx', args)).stdout).candidates).toEqual(packaged.candidates);
  });

  it('says what is wrong, with exit code 2', async () => {
    const failed = await inProject('npx', ['millrace', 'start', '--rate', 'abc']).catch(
      (error: { code: number; stderr: string }) => error,
    );
    expect(failed).toMatchObject({ code: 2, stderr: expect.stringContaining("option '--rate <requests>'") });
  });
});

describe('the clone', () => {
  it('has `npx millrace` too', async () => {
    const { stdout } = await run('npx', ['millrace', '--version'], { cwd: clone, env: environment });
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

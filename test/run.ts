import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { applyPatches } from '../src/adapters/kafka/kafkajs/patches.ts';
import { findStack } from '../src/local-stack/find-stack.ts';
import { pythonWith, SERVERS, type ServerName } from './interop/environments.ts';
import { softwareDevice } from './interop/software-device.ts';
import { registryProcess } from './registry-threads.ts';

/**
 * `npm test`: types, lint, then every test on a real Kafka, registry and Redis that it provides itself. `--slow` runs the slow suites instead, `--interop` those on
 * inference servers that others wrote, and on a WebGPU device in software.
 * The last lines are what failed, a `✗` each, and `N passed, N failed, N skipped`, read from the runner's own results.
 */

interface Totals {
  passed: number;
  /** What failed, by name. */
  failed: readonly string[];
  skipped: number;
}

interface VitestReport {
  numPassedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  success: boolean;
  testResults: readonly {
    name: string;
    status: string;
    assertionResults: readonly { fullName: string; status: string }[];
  }[];
}

function run(command: string, args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', env: environment });
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(signal === null ? (code ?? 1) : 1));
  });
}

async function check(name: string, command: string, args: readonly string[]): Promise<Totals> {
  const code = await run(command, args, process.env);
  console.log(`${code === 0 ? '✓' : '✗'} ${name}`);
  return code === 0 ? { passed: 1, failed: [], skipped: 0 } : { passed: 0, failed: [name], skipped: 0 };
}

async function vitest(
  projects: readonly string[],
  environment: NodeJS.ProcessEnv,
  workers: number,
  files: readonly string[] = [],
): Promise<Totals> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'));
  const file = join(folder, 'results.json');
  try {
    const args = [
      'run',
      ...files,
      `--maxWorkers=${workers}`,
      ...projects.flatMap((project) => ['--project', project]),
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${file}`,
    ];
    const code = await run('vitest', args, environment);
    const report = JSON.parse(readFileSync(file, 'utf8')) as VitestReport;
    const failed = failures(report);
    // An error outside of any test and file fails the run all the same.
    const unseen =
      failed.length === 0 && (code !== 0 || !report.success) ? ['an error outside of a test'] : [];
    return {
      passed: report.numPassedTests,
      failed: [...failed, ...unseen],
      skipped: report.numPendingTests + report.numTodoTests,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Tests that failed, and files that failed without one: those that cannot be loaded, or whose hooks threw. */
function failures({ testResults }: VitestReport): string[] {
  return testResults.flatMap(({ name, status, assertionResults }) => {
    const file = relative(process.cwd(), name);
    const tests = assertionResults.filter(({ status }) => status === 'failed');
    if (tests.length === 0) return status === 'failed' ? [file] : [];
    return tests.map(({ fullName }) => `${file}: ${fullName}`);
  });
}

/** Says so, and in CI fails. */
function notRun(suites: readonly string[], reason: Error): Totals {
  console.log(`\nNOT RUN: ${suites.join(', ')}. ${reason.message}`);
  return process.env['CI'] === 'true'
    ? { passed: 0, failed: [`not run: ${suites.join(', ')}`], skipped: 0 }
    : { passed: 0, failed: [], skipped: suites.length };
}

/** Tests on real services; where no services are to be had, they are not run. */
async function onRealServices(projects: readonly string[], workers: number): Promise<Totals> {
  applyPatches();
  const started = await findStack(process.env).catch((error: unknown) =>
    error instanceof Error ? error : new Error(String(error)),
  );
  if (started instanceof Error) return notRun(projects, started);
  try {
    const environment = { ...process.env, ...started.environment, ...registryProcess(started) };
    return await vitest(projects, environment, workers);
  } finally {
    await started.stop();
  }
}

/** Tests on inference servers that others wrote, each installed first; one that cannot be is not run. */
async function onInferenceServers(): Promise<Totals[]> {
  const installed: ServerName[] = [];
  const totals: Totals[] = [];
  for (const server of SERVERS) {
    const startedAt = Date.now();
    try {
      await pythonWith(server);
      installed.push(server);
      console.log(`✓ ${server} is installed (${Math.round((Date.now() - startedAt) / 1_000)} s)`);
    } catch (error) {
      totals.push(notRun([server], error instanceof Error ? error : new Error(String(error))));
    }
  }
  if (installed.length === 0) return totals;
  const files = installed.map((server) => `test/interop/${server}.test.ts`);
  return [...totals, await vitest(['interop'], process.env, INTEROP_WORKERS, files)];
}

/** Tests of the WebGPU backend, on a device in software that is fetched first. */
async function onSoftwareDevice(): Promise<Totals> {
  const startedAt = Date.now();
  const device = await softwareDevice().catch((error: unknown) =>
    error instanceof Error ? error : new Error(String(error)),
  );
  if (device instanceof Error) return notRun(['webgpu'], device);
  console.log(`✓ the software device is there (${Math.round((Date.now() - startedAt) / 1_000)} s)`);
  return vitest(['interop'], { ...process.env, ...device }, 1, ['test/interop/webgpu.test.ts']);
}

const UNIT_WORKERS = 2;
/** Triton alone takes as long as the others together. */
const INTEROP_WORKERS = 2;
/** Tests on real services mostly wait: for rebalances, sessions, restarts. */
const WAITING_WORKERS = 4;

async function everyTest(): Promise<Totals[]> {
  return [
    ...(await Promise.all([
      check('types', 'tsc', ['--noEmit']),
      check('lint and format', 'biome', ['ci', '.']),
    ])),
    // Side by side: the former compute, the latter mostly wait.
    ...(await Promise.all([
      vitest(['unit', 'unpatched'], process.env, UNIT_WORKERS),
      onRealServices(['conformance', 'integration'], WAITING_WORKERS),
    ])),
  ];
}

async function chosenTests(flags: readonly string[]): Promise<Totals[]> {
  if (flags.includes('--slow')) return [await onRealServices(['slow'], 1)];
  return flags.includes('--interop')
    ? [...(await onInferenceServers()), await onSoftwareDevice()]
    : everyTest();
}

const startedAt = Date.now();
const totals = await chosenTests(process.argv);
const sum = totals.reduce((a, b) => ({
  passed: a.passed + b.passed,
  failed: [...a.failed, ...b.failed],
  skipped: a.skipped + b.skipped,
}));
console.log(`\n${Math.round((Date.now() - startedAt) / 1_000)} s`);
for (const name of sum.failed) console.log(`✗ ${name}`);
console.log(`${sum.passed} passed, ${sum.failed.length} failed, ${sum.skipped} skipped`);
process.exitCode = sum.failed.length === 0 ? 0 : 1;

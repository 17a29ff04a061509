import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { applyPatches } from '../src/adapters/kafka/kafkajs/patches.ts';
import { findStack } from '../src/local-stack/find-stack.ts';
import { registryProcess } from './registry-threads.ts';

/**
 * `npm test`: types, lint, then every test on a real Kafka, registry and Redis that it provides itself. `--slow` runs the slow suites instead.
 * The last line is `N passed, N failed, N skipped`, read from the runner's own results.
 */

interface Totals {
  passed: number;
  failed: number;
  skipped: number;
}

interface VitestReport {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  numFailedTestSuites: number;
  success: boolean;
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
  return code === 0 ? { passed: 1, failed: 0, skipped: 0 } : { passed: 0, failed: 1, skipped: 0 };
}

async function vitest(
  projects: readonly string[],
  environment: NodeJS.ProcessEnv,
  workers: number,
): Promise<Totals> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'));
  const file = join(folder, 'results.json');
  try {
    const args = [
      'run',
      `--maxWorkers=${workers}`,
      ...projects.flatMap((project) => ['--project', project]),
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${file}`,
    ];
    const code = await run('vitest', args, environment);
    const report = JSON.parse(readFileSync(file, 'utf8')) as VitestReport;
    const failed = report.numFailedTests;
    // A file that cannot be loaded, or an error outside a test, fails the run without a failed test.
    const unseen =
      failed === 0 && (code !== 0 || !report.success) ? Math.max(1, report.numFailedTestSuites) : 0;
    return {
      passed: report.numPassedTests,
      failed: failed + unseen,
      skipped: report.numPendingTests + report.numTodoTests,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Tests on real services; where no services are to be had, says so and, in CI, fails. */
async function onRealServices(projects: readonly string[], workers: number): Promise<Totals> {
  applyPatches();
  const started = await findStack(process.env).catch((error: unknown) =>
    error instanceof Error ? error : new Error(String(error)),
  );
  if (started instanceof Error) {
    console.log(`\nNOT RUN: ${projects.join(', ')}. ${started.message}`);
    return process.env['CI'] === 'true'
      ? { passed: 0, failed: 1, skipped: 0 }
      : { passed: 0, failed: 0, skipped: projects.length };
  }
  try {
    const environment = { ...process.env, ...started.environment, ...registryProcess(started) };
    return await vitest(projects, environment, workers);
  } finally {
    await started.stop();
  }
}

/** Some unit tests wait too: for processes that they start, and for answers that must not come. */
const UNIT_WORKERS = 3;
/** Tests on real services mostly wait: for rebalances, sessions, restarts. */
const WAITING_WORKERS = 4;

const slow = process.argv.includes('--slow');
const startedAt = Date.now();
const totals: Totals[] = slow
  ? [await onRealServices(['slow'], 1)]
  : [
      ...(await Promise.all([
        check('types', 'tsc', ['--noEmit']),
        check('lint and format', 'biome', ['ci', '.']),
      ])),
      await vitest(['unit', 'unpatched'], process.env, UNIT_WORKERS),
      await onRealServices(['conformance', 'integration'], WAITING_WORKERS),
    ];
const sum = totals.reduce((a, b) => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  skipped: a.skipped + b.skipped,
}));
console.log(`\n${Math.round((Date.now() - startedAt) / 1_000)} s`);
console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`);
process.exitCode = sum.failed === 0 ? 0 : 1;

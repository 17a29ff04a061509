import { spawnSync } from 'node:child_process';

/**
 * `npm run test:nightly [-- seed]`: the long sweeps, one after another, on seeds of their own: by default the day's, so that each night looks elsewhere.
 * What fails says the seed and the command that shows it again. About half an hour on one core.
 */
const DAY_MS = 86_400_000;
const [given] = process.argv.slice(2);
const seed = given ?? String(Math.floor(Date.now() / DAY_MS));

/** Random schedules of faults, others each night. */
const SCHEDULES = 10_000;

const SWEEPS: readonly (readonly [script: string, ...args: string[]])[] = [
  ['test/simulation/sweep.ts', seed, '200'],
  [
    'test/simulation/schedule-sweep.ts',
    '--first',
    String(Number(seed) * SCHEDULES),
    '--seeds',
    String(SCHEDULES),
  ],
  ['test/simulation/tuning-sweep.ts', seed, '40'],
  ['test/fuzz/decoders.ts', '--inputs', '500000', '--seed', seed],
  ['test/fuzz/policies.ts', '--inputs', '100000', '--seed', seed],
  ['test/fuzz/control.ts', '--inputs', '400000', '--seed', seed],
];

const failed: string[] = [];
for (const sweep of SWEEPS) {
  const command = `node ${sweep.join(' ')}`;
  console.log(`\n$ ${command}`);
  const startedMs = Date.now();
  const { status } = spawnSync(process.execPath, [...sweep], { stdio: 'inherit' });
  console.log(`${Math.round((Date.now() - startedMs) / 1_000)} s`);
  if (status !== 0) failed.push(command);
}
console.log(`\nseed ${seed}`);
for (const command of failed) console.log(`✗ ${command}`);
console.log(`${SWEEPS.length - failed.length} passed, ${failed.length} failed, 0 skipped`);
process.exitCode = failed.length === 0 ? 0 : 1;

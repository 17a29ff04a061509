import { FAULTS, SEVERAL } from './faults.ts';
import { runFault } from './run-fault.ts';

/**
 * `node test/simulation/sweep.ts [first seed] [seeds] [part of a fault's name]`: runs every fault with each seed, and prints those that
 * went wrong; each is the same again whenever it is run.
 */
const [first = '1', count = '500', part = ''] = process.argv.slice(2);
let runs = 0;
let failures = 0;
for (const fault of [...FAULTS, SEVERAL].filter(({ name }) => name.includes(part))) {
  const startedMs = performance.now();
  for (let seed = Number(first); seed < Number(first) + Number(count); seed += 1) {
    runs += 1;
    const violations = await runFault(fault, seed).then(
      (run) => run.violations,
      (error: unknown) => [error instanceof Error ? (error.stack ?? error.message) : String(error)],
    );
    if (violations.length === 0) continue;
    failures += 1;
    console.log(`FAILED "${fault.name}", seed ${seed}: ${violations.slice(0, 5).join('; ')}`);
  }
  console.log(`${fault.name}: ${((performance.now() - startedMs) / Number(count)).toFixed(1)} ms a run`);
}
console.log(`${runs} runs, ${failures} failed`);
process.exitCode = failures === 0 ? 0 : 1;

import { parseArgs } from 'node:util';
import type { FaultSchedule } from './fault-schedule.ts';
import { commandOf, runSchedule, scheduleOf } from './run-schedule.ts';
import { failureOf, shrink } from './shrink.ts';

/**
 * `node test/simulation/schedule-sweep.ts [--first seed] [--seeds n] [--no-shrink]`: runs the random fault schedule of each seed, and prints
 * those that went wrong, cut down to what still fails; or one schedule again, with `--schedule JSON`; or, with `--until-failure first,first,…`, how many
 * schedules it takes from each of these seeds until one fails.
 */
const { values } = parseArgs({
  options: {
    first: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1000' },
    schedule: { type: 'string' },
    'until-failure': { type: 'string' },
    'no-shrink': { type: 'boolean', default: false },
  },
});

async function report(schedule: FaultSchedule): Promise<boolean> {
  const failure = await failureOf(schedule);
  if (failure === undefined) return true;
  console.log(`FAILED, seed ${schedule.seed}: ${failure.violations.slice(0, 4).join('; ')}`);
  console.log(`  again: ${commandOf(schedule)}`);
  if (values['no-shrink']) return false;
  const { schedule: small, runs } = await shrink(schedule, failureOf);
  console.log(`  after ${runs} runs: ${commandOf(small)}`);
  return false;
}

async function untilFailure(first: number, count: number): Promise<string> {
  for (let took = 1; took <= count; took += 1) {
    const failure = await failureOf(scheduleOf(first + took - 1));
    if (failure !== undefined) return `${took} ${failure.violations[0]?.split('\n')[0]}`;
  }
  return '-';
}

const untilFrom = values['until-failure'];
if (untilFrom !== undefined) {
  for (const first of untilFrom.split(','))
    console.log(`took ${await untilFailure(Number(first), Number(values.seeds))}`);
} else if (values.schedule !== undefined) {
  const schedule = JSON.parse(values.schedule) as FaultSchedule;
  const { violations, installation } = await runSchedule(schedule);
  for (const violation of violations) console.log(violation);
  console.log(`${violations.length} violations; everything stored: ${installation.auditor.digest()}`);
  process.exitCode = violations.length === 0 ? 0 : 1;
} else {
  const first = Number(values.first);
  const count = Number(values.seeds);
  const startedMs = performance.now();
  let failures = 0;
  for (let seed = first; seed < first + count; seed += 1)
    if (!(await report(scheduleOf(seed)))) failures += 1;
  const ms = (performance.now() - startedMs) / count;
  console.log(`schedules ${first} to ${first + count - 1}: ${failures} failed; ${ms.toFixed(1)} ms a run`);
  process.exitCode = failures === 0 ? 0 : 1;
}

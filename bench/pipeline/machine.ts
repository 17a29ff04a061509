import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';

const TICKS_PER_SECOND = 100;
const LOOK_MS = 1_000;

/** CPU time of all processes so far, user and system, ms. Linux; NaN elsewhere. */
export function machineBusyMs(): number {
  const fields = readProc('/proc/stat')?.split('\n', 1)[0]?.trim().split(/\s+/).slice(1).map(Number) ?? [];
  const [user = Number.NaN, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields;
  return ((user + nice + system + irq + softirq + steal) * 1_000) / TICKS_PER_SECOND;
}

/** CPU time that the processes took so far, user and system, ms. Linux; NaN elsewhere. */
export function cpuMs(pids: readonly number[]): number {
  let ticks = 0;
  for (const pid of pids) {
    const fields = readProc(`/proc/${pid}/stat`)
      ?.replace(/^.*\) /s, '')
      .split(' ');
    ticks += Number(fields?.[11]) + Number(fields?.[12]);
  }
  return (ticks * 1_000) / TICKS_PER_SECOND;
}

/** Resident memory of a process, MB (10^6 bytes). Linux; NaN elsewhere. */
export function residentMb(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readProc(`/proc/${pid}/status`) ?? '')?.[1];
  return (Number(kilobytes ?? Number.NaN) * 1_024) / 1e6;
}

/** Of it, what the process shares with nobody: not the Node program itself, which lies in memory once. MB. Linux; NaN elsewhere. */
export function privateMb(pid: number): number {
  const rollup = readProc(`/proc/${pid}/smaps_rollup`) ?? '';
  const kilobytes = [...rollup.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+)/gm)].map(([, count]) =>
    Number(count),
  );
  return kilobytes.length === 0
    ? Number.NaN
    : (kilobytes.reduce((sum, count) => sum + count, 0) * 1_024) / 1e6;
}

/** Waits until the machine is busy for less than `shareMax` of its cores over a second; gives up waiting after `patienceMs`. */
export async function quietMachine(shareMax: number, patienceMs: number): Promise<void> {
  const untilMs = performance.now() + patienceMs;
  while (performance.now() < untilMs) {
    const before = machineBusyMs();
    await pause(LOOK_MS);
    const share = (machineBusyMs() - before) / (LOOK_MS * cpus().length);
    if (!(share > shareMax)) return;
  }
}

function readProc(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

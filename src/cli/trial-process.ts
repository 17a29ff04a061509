import { type ChildProcess, execFile, fork } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { MillraceError } from '../core/errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { TrialAnswer, TrialJob, TrialResult } from './trial-job.ts';

/** What a trial of a model may take; a person may raise both. */
export interface TrialBounds {
  readonly memoryMiB: number;
  readonly timeMs: number;
}

const MIB = 1_048_576;
const LOOK_MS = 50;
/** Without /proc a process has to be started for each look. */
const LOOK_BY_PS_MS = 500;

/**
 * Tries a model in a process of its own. A file of a few hundred bytes can ask ONNX Runtime for any memory and any time, neither of which a limit of
 * a thread holds: it allocates outside the heap of JavaScript, and one call cannot be interrupted. A limit of the address space (`ulimit -v`) would
 * not do either: V8 reserves far more of it than it uses. So we look at the memory that the process has, several times a second, and at the clock,
 * and end it: what it had is free again, and this process is as it was.
 *
 * @throws MillraceError what the trial was refused for; INVALID_MODEL where it was ended, with the bound and the flag that raises it
 */
export async function tryInProcess<J extends TrialJob>(
  job: J,
  bounds: TrialBounds,
  clock: Clock,
): Promise<TrialResult<J>> {
  const child = fork(new URL(HOST, import.meta.url), [], {
    serialization: 'advanced',
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const watches = watch(child, bounds, clock);
  try {
    const answer = answerOf<J>(child);
    child.send(job, () => undefined);
    return await Promise.race([answer, watches.exceeded]);
  } finally {
    watches.end();
    child.kill('SIGKILL');
  }
}

const HOST = import.meta.url.endsWith('.ts') ? './trial-host.ts' : './trial-host.js';

function answerOf<J extends TrialJob>(child: ChildProcess): Promise<TrialResult<J>> {
  return new Promise((resolve, reject) => {
    child.once('message', (answer: TrialAnswer<J>) => {
      if ('value' in answer) resolve(answer.value);
      else if (answer.code === undefined) reject(new Error(answer.message));
      else reject(new MillraceError(answer.code, answer.message));
    });
    child.once('error', reject);
    child.once('exit', (code, signal) =>
      reject(
        new MillraceError('INVALID_MODEL', 'the process that tried the model ended by itself', {
          value: signal ?? `exit code ${code}`,
          advice:
            'A model that takes more memory than the machine has does that: try it where there is more.',
        }),
      ),
    );
  });
}

/** Rejects once a bound is passed. */
function watch(
  child: ChildProcess,
  { memoryMiB, timeMs }: TrialBounds,
  clock: Clock,
): { exceeded: Promise<never>; end(): void } {
  const cancels: (() => void)[] = [];
  const exceeded = new Promise<never>((_, reject) => {
    const late = new MillraceError('INVALID_MODEL', 'trying the model took too long, and was ended', {
      value: `more than ${timeMs / 1_000} s`,
      allowed: `${timeMs / 1_000} s (--time-max)`,
      advice: 'If it is meant to take so long: --time-max 30m',
    });
    cancels.push(clock.after(timeMs, () => reject(late)));
    const look = (bytes: number): void => {
      if (bytes <= memoryMiB * MIB) return;
      const large = new MillraceError(
        'INVALID_MODEL',
        'trying the model took too much memory, and was ended',
        {
          value: `more than ${memoryMiB} MiB`,
          allowed: `${memoryMiB} MiB (--memory-max)`,
          advice: `If it is meant to take so much: --memory-max ${2 * memoryMiB}`,
        },
      );
      reject(large);
    };
    cancels.push(lookAtMemory(child.pid ?? 0, look, clock));
  });
  // It may have lost the race.
  exceeded.catch(() => undefined);
  return {
    exceeded,
    end() {
      for (const cancel of cancels) cancel();
    },
  };
}

/** Of a process that is gone there is nothing to tell. */
function lookAtMemory(pid: number, take: (bytes: number) => void, clock: Clock): () => void {
  const hasProc = process.platform === 'linux';
  const read = hasProc ? memoryByProc : memoryByPs;
  return clock.every(hasProc ? LOOK_MS : LOOK_BY_PS_MS, () => {
    read(pid).then(take, () => undefined);
  });
}

/** What it has in memory, and what was swapped out of it. */
async function memoryByProc(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const sizes = status.matchAll(/^(?:VmRSS|VmSwap):\s+(\d+) kB$/gm);
  return [...sizes].reduce((sum, [, kib]) => sum + Number(kib) * 1_024, 0);
}

async function memoryByPs(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(pid)]);
  return Number(stdout) * 1_024;
}

import { type Command, Option } from 'commander';
import { count, duration } from './flags.ts';
import type { TrialBounds } from './trial-process.ts';

export interface TrialFlags {
  memoryMax: number;
  timeMax: number;
}

const MEMORY_MAX_MIB = 4_096;
const TIME_MAX_MS = 300_000;

/** Of commands that run a model which nobody has looked at. */
export function withTrialBounds(command: Command): Command {
  return command
    .option('--memory-max <MiB>', 'memory that trying the model may take', count, MEMORY_MAX_MIB)
    .addOption(
      new Option('--time-max <time>', 'how long trying it may take')
        .argParser(duration)
        .default(TIME_MAX_MS, '5m'),
    );
}

export function boundsOf({ memoryMax, timeMax }: TrialFlags): TrialBounds {
  return { memoryMiB: memoryMax, timeMs: timeMax };
}

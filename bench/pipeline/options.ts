import { parseArgs } from 'node:util';

/** How often and how long each variant is measured. */
export interface Effort {
  rounds: number;
  warmUpMs: number;
  measureMs: number;
  /** Parts of the benchmark to run; empty for all. */
  only: readonly string[];
}

/** `--rounds`, `--seconds` (measured), `--warm-up` (seconds before), `--only` (parts, separated by commas). */
export function readEffort(
  args: readonly string[],
  defaults: { rounds: number; seconds: number; warmUp: number },
): Effort {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string', default: String(defaults.rounds) },
      seconds: { type: 'string', default: String(defaults.seconds) },
      'warm-up': { type: 'string', default: String(defaults.warmUp) },
      only: { type: 'string', default: '' },
    },
  });
  return {
    rounds: Number(values.rounds),
    measureMs: Number(values.seconds) * 1_000,
    warmUpMs: Number(values['warm-up']) * 1_000,
    only: values.only.split(',').filter((part) => part !== ''),
  };
}

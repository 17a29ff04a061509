import { parseArgs } from 'node:util';

/** How often and how long each variant is measured. */
export interface Effort {
  rounds: number;
  warmUpMs: number;
  measureMs: number;
  /** Parts of the benchmark to run; empty for all. */
  only: readonly string[];
  /** Runs count as they are, whatever others do on the machine meanwhile. */
  disturbed: boolean;
}

/** `--rounds`, `--seconds` (measured), `--warm-up` (seconds before), `--only` (parts, separated by commas), `--disturbed`. */
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
      disturbed: { type: 'boolean', default: false },
    },
  });
  return {
    rounds: Number(values.rounds),
    measureMs: Number(values.seconds) * 1_000,
    warmUpMs: Number(values['warm-up']) * 1_000,
    disturbed: values.disturbed,
    only: values.only.split(',').filter((part) => part !== ''),
  };
}

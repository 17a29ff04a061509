import type { Stack } from '../../src/local-stack/stack.ts';
import { type RunOptions, type RunResult, runOnce, type Variant } from './run-once.ts';
import { median } from './statistics.ts';

const OTHERS_SHARE_MAX = 0.08;
const TRIES = 4;

/** The results of each variant, in the order of the rounds. */
export type Compared<Name extends string> = Readonly<Record<Name, readonly RunResult[]>>;

/**
 * Runs the variants in turn, round by round, the order turned around in every other one: what the machine does besides
 * touches all of them alike.
 */
export async function compare<Name extends string>(
  stack: Stack,
  variants: Readonly<Record<Name, Variant>>,
  options: RunOptions,
  rounds: number,
): Promise<Compared<Name>> {
  const names = Object.keys(variants) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, RunResult[]>;
  for (let round = 0; round < rounds; round += 1) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      results[name].push(await runUndisturbed(stack, name, variants[name], options));
    }
  }
  return results;
}

/** A run beside which others took too much of the machine is no measurement: it is done again, but not for ever. */
async function runUndisturbed(
  stack: Stack,
  name: string,
  variant: Variant,
  options: RunOptions,
): Promise<RunResult> {
  for (let tries = 1; ; tries += 1) {
    const result = await runOnce(stack, variant, options);
    report(name, options, result);
    if (options.disturbed === true || result.othersShare <= OTHERS_SHARE_MAX || tries === TRIES)
      return result;
  }
}

/** The median over the rounds of each round's ratio. */
export function ratio(
  ours: readonly RunResult[],
  peers: readonly RunResult[],
  of: (result: RunResult) => number,
): number {
  return median(ours.map((result, round) => of(result) / of(peers[round] ?? result)));
}

export function medianOf(results: readonly RunResult[], of: (result: RunResult) => number): number {
  return median(results.map(of));
}

function report(name: string, { requestBytes, load }: RunOptions, result: RunResult): void {
  const { perSecond, latencyMsP50, latencyMsP99, cpuUs, brokerCpuUs, othersShare } = result;
  const how = load.kind === 'closed' ? `${load.window} in flight` : `${Math.round(load.perSecond)}/s offered`;
  console.error(
    `${name}${requestBytes > 0 ? `, ${requestBytes} bytes` : ''}, ${how}: ${perSecond.toFixed(0)}/s, p50 ${latencyMsP50.toFixed(1)} ms, p99 ${latencyMsP99.toFixed(1)} ms, ` +
      `CPU ${cpuUs.toFixed(0)} µs and ${brokerCpuUs.toFixed(0)} µs of the broker; others took ${(othersShare * 100).toFixed(0)} % of the machine`,
  );
}

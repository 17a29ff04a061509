import type { Installation } from './installation.ts';
import { FLOOR, TunedPipeline, type TunedPipelineOptions, tunedPolicyText } from './tuned-pipeline.ts';
import type { Memory } from './tuning-domains.ts';

/** Periods of good times at first: those that the controller learns from, and one. */
const LEARN = 6;
const DEVICE = { hbm: 'a100', l2: 'v100' } as const;

export interface TuningRun {
  /** What was wrong; empty in a good run. */
  readonly violations: readonly string[];
  /** Share of the slow domain's requests that were elsewhere in the period after the first step. */
  readonly moved: number;
  /** Whole periods from the beginning of the trouble to the first step. */
  readonly stepAfter: number;
  /** Periods from the end of the trouble until the constant is back. */
  readonly backAfter: number;
}

export interface Trouble {
  readonly memory: Memory;
  /** Part of a period that has passed when it begins, 0 … 1. */
  readonly phase: number;
  /** Whether the device's kernels take twice as long, or its queue is long since it has half of its workers. */
  readonly kind: 'kernels' | 'queue';
}

/** @returns what mends it */
function spoil(installation: Installation, pool: string, { kind, memory }: Trouble): () => void {
  switch (kind) {
    case 'kernels':
      installation.slowdown = (device, domain) => (device === pool && domain === memory ? 2 : 1);
      return () => {
        installation.slowdown = () => 1;
      };
    case 'queue':
      for (const host of installation.up(`${pool}-1`)) void installation.close(host);
      return () => void installation.startWorker(pool, 1);
    default:
      return kind satisfies never;
  }
}

/** One domain gets slow all at once, for 13 periods; then it heals. */
export async function runTrouble(options: TunedPipelineOptions, trouble: Trouble): Promise<TuningRun> {
  const { memory, phase } = trouble;
  const pipeline = await TunedPipeline.open(options);
  const { installation } = pipeline;
  const wrong: string[] = [];
  const hold = (isRight: boolean, what: string): void => {
    if (!isRight) wrong.push(what);
  };
  await pipeline.periods(LEARN);
  hold(pipeline.steps.length === 0, 'a step before there was any trouble');
  const pool = options.pools === 'one' ? 'a100' : DEVICE[memory];
  await pipeline.partOfPeriod(phase);
  const mend = spoil(installation, pool, trouble);
  const begunAt = pipeline.looks;
  for (let n = 0; n < 4 && pipeline.steps.length === 0; n += 1) await pipeline.periods(1);
  const first = pipeline.steps[0];
  const stepAfter = pipeline.looks - begunAt - (phase > 0 ? 1 : 0);
  hold(first?.direction === (memory === 'hbm' ? 'up' : 'down'), `the first step is ${first?.direction}`);
  hold(stepAfter <= 2, `the step comes after ${stepAfter} whole periods`);
  const { [memory]: moved } = await pipeline.moved(() => pipeline.periods(1));
  hold(moved >= 0.1, `${(100 * moved).toFixed(1)} % of the requests of ${memory} moved`);
  await pipeline.periods(10);
  const during = pipeline.steps;
  hold(
    during.every(({ direction }) => direction === first?.direction),
    `oscillation: ${during.map(({ period, direction }) => `${period} ${direction}`).join(', ')}`,
  );
  mend();
  const healedAt = pipeline.looks;
  const isBack = (): boolean => pipeline.children.at(-1)?.value === FLOOR.home;
  while (!isBack() && pipeline.looks < healedAt + 40) await pipeline.periods(1);
  const backAfter = pipeline.looks - healedAt;
  hold(isBack(), `it is not back 40 periods after: ${pipeline.children.at(-1)?.value}`);
  const steps = pipeline.steps.length;
  await pipeline.periods(1);
  hold(pipeline.steps.length === steps, 'it does not stay at home');
  const after = await pipeline.moved(() => pipeline.periods(1));
  hold(after.hbm === 0 && after.l2 === 0, `${JSON.stringify(after)} is elsewhere after all`);
  return { violations: [...wrong, ...(await pipeline.close())], moved, stepAfter, backAfter };
}

/** The controller dies in the midst of the trouble; another one takes over where the log ends. */
export async function runTakeOver(options: TunedPipelineOptions): Promise<string[]> {
  const pipeline = await TunedPipeline.open(options);
  const { installation } = pipeline;
  await pipeline.periods(LEARN);
  spoil(installation, 'a100', { memory: 'hbm', phase: 0, kind: 'kernels' });
  await pipeline.periods(1);
  for (const host of installation.up('controller')) installation.crash(host);
  installation.startController('controller-2');
  await pipeline.partOfPeriod(1);
  await installation.allSettled();
  await pipeline.periods(3);
  const [first] = pipeline.steps;
  const wrong = first?.direction === 'up' ? [] : [`the second controller took the step ${first?.direction}`];
  return [...wrong, ...(await pipeline.close())];
}

/** Trouble while a rollout is in canary, then without one, and then a person takes the step back. */
export async function runRolloutAndUndo(options: TunedPipelineOptions): Promise<string[]> {
  const pipeline = await TunedPipeline.open({ ...options, rollout: 'staged' });
  const { installation } = pipeline;
  const wrong: string[] = [];
  await pipeline.periods(LEARN);
  await pipeline.command('PUBLISH_POLICY', tunedPolicyText(2, options.pools));
  await pipeline.command('START', '{"version": 2}');
  await pipeline.partOfPeriod(1.5);
  await pipeline.command('PROMOTE');
  spoil(installation, 'a100', { memory: 'hbm', phase: 0, kind: 'kernels' });
  await pipeline.periods(4);
  if (pipeline.children.length > 0) wrong.push('a step in canary');
  await pipeline.command('ABORT');
  await pipeline.periods(3);
  if (pipeline.steps.length === 0) wrong.push('no step after the rollout');
  const stepped = pipeline.children.at(-1);
  await pipeline.command('ROLL_BACK');
  await pipeline.partOfPeriod(0.1);
  const back = await installation.settle(installation.store.connect().readPointer('policy/tuned'));
  if (back?.stable.version !== (stepped?.policy.version ?? 0) - 1 && back?.stable.version !== 1)
    wrong.push(`the rollback of version ${stepped?.policy.version} leads to ${back?.stable.version}`);
  const steps = pipeline.steps.length;
  const { hbm } = await pipeline.moved(() => pipeline.periods(4));
  if (steps === 1 && hbm > 0.02) wrong.push(`${hbm} of the requests are still elsewhere`);
  if (pipeline.steps.length > steps) wrong.push('the controller goes against the person');
  return [...wrong, ...(await pipeline.close())];
}

/** A day's rhythm, bursts and hiccups, and nothing that lasts. @returns how many steps there were, and what was wrong */
export async function runNoise(
  options: TunedPipelineOptions,
  periods: number,
): Promise<{ steps: number; violations: string[] }> {
  const { periodMs } = options;
  const pipeline = await TunedPipeline.open({
    ...options,
    traffic: (nowMs) =>
      (1 + 0.25 * Math.sin((2 * Math.PI * nowMs) / (30 * periodMs))) *
      (nowMs % (5.7 * periodMs) < 0.11 * periodMs ? 1.6 : 1),
  });
  const { installation } = pipeline;
  installation.slowdown = (_pool, memory) => {
    const nowMs = installation.clock.monotonicMs();
    const isTurn = Math.floor(nowMs / (1.7 * periodMs)) % 2 === (memory === 'hbm' ? 0 : 1);
    return isTurn && nowMs % (1.7 * periodMs) < 0.012 * periodMs ? 3 : 1;
  };
  await pipeline.periods(periods);
  return { steps: pipeline.steps.length, violations: await pipeline.close() };
}

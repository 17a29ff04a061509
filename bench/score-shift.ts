import { parseArgs } from 'node:util';
import { seededRandom } from '../src/core/random/seeded-random.ts';
import type { BenchRow } from './run.ts';
import { costRows } from './score-shift/cost.ts';
import { runStage, type Scenario, type StageOutcome } from './score-shift/stage.ts';

/**
 * How often the guardrails on scores are wrong, and how soon they are right: canary stages of 15 minutes at 5 % with a look every 10 s, of Zipf keys
 * that stick to their arm and whose scores are alike. Beside them, the same limits without regard to noise. `--stages` per figure, `--seed`.
 */

const USAGE = {
  stages: { type: 'string', default: '1000' },
  seed: { type: 'string', default: '1' },
} as const;

const EQUAL: readonly Scenario[] = [100_000, 5_000, 1_000].flatMap((keys) =>
  [0, 0.5, 1].map((likeness) => ({ keys, likeness, meanShift: 0, spread: 1, requestsPerS: 100 })),
);
const USUAL = { keys: 100_000, likeness: 0.5, requestsPerS: 100 };
const SHIFTED: readonly (Scenario & { label: string })[] = [
  { ...USUAL, label: 'mean + 0.25 sd (at the limit)', meanShift: 0.25, spread: 1 },
  { ...USUAL, label: 'mean + 0.5 sd', meanShift: 0.5, spread: 1 },
  { ...USUAL, label: 'mean + 1 sd', meanShift: 1, spread: 1 },
  { ...USUAL, label: 'same mean, spread × 2', meanShift: 0, spread: 2 },
];

export async function run(args: readonly string[] = []): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const stages = Number(values.stages);
  if (!(Number.isSafeInteger(stages) && stages > 0))
    throw new RangeError('--stages is a whole number above 0');
  const outcomesOf = (scenario: Scenario, name: string): StageOutcome[] => {
    const random = seededRandom(Number(values.seed)).stream(name);
    return Array.from({ length: stages }, () => runStage(random, scenario));
  };
  return {
    rows: [
      ...EQUAL.flatMap((scenario) => equalRows(scenario, outcomesOf)),
      ...SHIFTED.flatMap((scenario) => shiftedRows(scenario, outcomesOf)),
      ...costRows(),
    ],
  };
}

type OutcomesOf = (scenario: Scenario, name: string) => StageOutcome[];

function equalRows(scenario: Scenario, outcomesOf: OutcomesOf): BenchRow[] {
  const { keys, likeness } = scenario;
  const what = `no difference, ${keys} keys, ${likeness * 100} % of the variance between them`;
  const outcomes = outcomesOf(scenario, what);
  return [
    {
      metric: `${what}: held`,
      value: share(outcomes, ({ heldAfterS }) => heldAfterS !== undefined),
      unit: '%',
      target: 1,
      relation: '<=',
    },
    { metric: `${what}: passes after 15 min`, value: share(outcomes, ({ passes }) => passes), unit: '%' },
    {
      metric: `${what}: held`,
      value: share(outcomes, ({ plainHeld }) => plainHeld),
      unit: '%',
      peer: 'the same limits, no bound on noise',
    },
  ];
}

function shiftedRows(scenario: Scenario & { label: string }, outcomesOf: OutcomesOf): BenchRow[] {
  const outcomes = outcomesOf(scenario, scenario.label);
  const held = outcomes.flatMap(({ heldAfterS }) => heldAfterS ?? []).sort((a, b) => a - b);
  const median = held[Math.floor(held.length / 2)];
  const rows: BenchRow[] = [
    {
      metric: `${scenario.label}: held within 15 min`,
      value: share(outcomes, ({ heldAfterS }) => heldAfterS !== undefined),
      unit: '%',
    },
    {
      metric: `${scenario.label}: passes after 15 min`,
      value: share(outcomes, ({ passes }) => passes),
      unit: '%',
    },
  ];
  if (median !== undefined)
    rows.push({ metric: `${scenario.label}: median time to hold, of those held`, value: median, unit: 's' });
  return rows;
}

function share(outcomes: readonly StageOutcome[], isSo: (outcome: StageOutcome) => boolean): number {
  return (100 * outcomes.filter(isSo).length) / outcomes.length;
}

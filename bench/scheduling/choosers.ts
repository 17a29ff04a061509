import { leastLoaded } from '../../src/simulation/baselines/least-loaded.ts';
import { leastUnacknowledged } from '../../src/simulation/baselines/least-unacknowledged.ts';
import { omniscientGreedy } from '../../src/simulation/baselines/omniscient-greedy.ts';
import { powerOfTwo } from '../../src/simulation/baselines/power-of-two.ts';
import { PREQUAL, prequal } from '../../src/simulation/baselines/prequal.ts';
import { randomChoice } from '../../src/simulation/baselines/random-choice.ts';
import { weightedRoundRobin } from '../../src/simulation/baselines/round-robin.ts';
import { routerScore } from '../../src/simulation/baselines/router-score-chooser.ts';
import { shortestExpectedWait } from '../../src/simulation/baselines/shortest-expected-wait.ts';
import type { CreateChooser } from '../../src/simulation/routing/chooser.ts';

export const CHOOSERS = {
  score: routerScore(),
  random: randomChoice,
  'weighted round robin': weightedRoundRobin,
  'least loaded by status': leastLoaded,
  'power of two, by status and own dispatches': powerOfTwo('status and own dispatches'),
  'power of two, by own unacknowledged': powerOfTwo('own unacknowledged'),
  'least own unacknowledged per speed': leastUnacknowledged,
  'shortest expected wait': shortestExpectedWait,
  'Prequal at 0.6': prequal({ ...PREQUAL, hotQuantile: 0.6 }),
  'Prequal at 0.84': prequal(PREQUAL),
  'Prequal at 0.9': prequal({ ...PREQUAL, hotQuantile: 0.9 }),
  'omniscient greedy': omniscientGreedy,
} as const satisfies Record<string, CreateChooser>;

export type ChooserName = keyof typeof CHOOSERS;

/** Those that listen to heartbeats: for the others it is all the same how often there are any. */
export const HEARS_STATUS: ReadonlySet<ChooserName> = new Set<ChooserName>([
  'score',
  'least loaded by status',
  'power of two, by status and own dispatches',
  'shortest expected wait',
]);

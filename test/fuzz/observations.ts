import type { Generator } from '../../src/core/random/generator.ts';
import type { MetricReading } from '../../src/core/rollout/metric-reading.ts';
import type { ArmObservation, Observation } from '../../src/core/rollout/observation.ts';
import type { HeadScores, ScoreGroup } from '../../src/core/rollout/score-observation.ts';
import { oneIn, pick } from './pick.ts';

const POOLS = ['cpu', 'a100', 'toString', 'valueOf'];

/** What an observer may have seen: mostly a healthy rollout, so that it gets on. */
export function observationOf(draw: Generator): Observation {
  const stable = armOf(draw, 20);
  const seen: Observation = {
    atMs: 0,
    windowMs: pick(draw, [1, 1_000, 10_000, 60_000]),
    stable,
    canary: armOf(draw, oneIn(draw, 12) ? 3 : 20),
    stableLatencyMs: oneIn(draw, 4) ? undefined : [5, 20, 40],
    shadow: oneIn(draw, 6) ? undefined : shadowOf(draw),
    pools: Object.fromEntries(
      POOLS.map((pool) => [
        pool,
        { utilisation: pick(draw, [0.1, 0.5, 0.95, 3]), queueMsP99: pick(draw, [0, 1, 30, 1e6]) },
      ]),
    ),
    scores: oneIn(draw, 3) ? { click: headOf(draw), toString: headOf(draw) } : {},
    metrics: oneIn(draw, 3) ? { watched: readingOf(draw), valueOf: readingOf(draw) } : {},
    fingerprint: oneIn(draw, 20) ? pick(draw, ['', 'other', '__proto__']) : 'build',
    refusals: oneIn(draw, 30) ? ['router-1: canary: INVALID_POLICY'] : [],
    modelsNotReady: oneIn(draw, 30) ? ['w1 (pool cpu) refuses ranker@3: golden case 1'] : [],
  };
  return oneIn(draw, 40) ? impossible(draw, seen) : seen;
}

function armOf(draw: Generator, harm: number): ArmObservation {
  const requests = pick(draw, [0, 1, 100, 5_000, 100_000]);
  const some = (): number => (oneIn(draw, harm) ? draw.below(requests + 1) : 0);
  return {
    requests,
    errors: some(),
    deadLettered: some(),
    deadlineMissed: some(),
    over: [requests >> 1, requests >> 5, requests >> 7],
  };
}

function shadowOf(draw: Generator): NonNullable<Observation['shadow']> {
  const requests = pick(draw, [0, 10, 20_000]);
  return {
    requests,
    changed: draw.below(requests + 1),
    changedOutsideDeclared: oneIn(draw, 6) ? draw.below(requests + 1) : 0,
    latencyApart: oneIn(draw, 10) ? requests : 0,
    exceptions: oneIn(draw, 30) ? 1 : 0,
    costUsP99: pick(draw, [1, 50, 500]),
    leaves: { rest: requests, wide: requests, node: requests, toString: requests, valueOf: requests },
    projectedUtilisation: { cpu: pick(draw, [0.2, 0.9]), toString: 0.1 },
  };
}

function headOf(draw: Generator): HeadScores {
  const edges = pick(draw, [[], [3], [1, 2, 600]]);
  const group = (): ScoreGroup => {
    const bins = Array.from({ length: edges.length + 1 }, () => draw.below(1_000));
    return { sum: draw.below(500), sumOfSquares: draw.below(900), bins };
  };
  const groups = (): ScoreGroup[] => Array.from({ length: 4 }, group);
  return { edges, stable: groups(), candidate: groups() };
}

function readingOf(draw: Generator): MetricReading {
  if (oneIn(draw, 6)) return { failed: 'nobody there' };
  const lowest = draw.below(3);
  return { series: draw.below(4), lowest, highest: lowest + draw.below(3) };
}

/** What no pipeline can show, and a border must not let through. */
function impossible(draw: Generator, seen: Observation): Observation {
  switch (draw.below(5)) {
    case 0:
      return { ...seen, canary: { ...seen.canary, errors: seen.canary.requests + 1 } };
    case 1:
      return { ...seen, windowMs: pick(draw, [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) };
    case 2:
      return { ...seen, stableLatencyMs: [Number.NaN, 1, -1] };
    case 3:
      return {
        ...seen,
        pools: JSON.parse('{"__proto__": {"utilisation": 1, "queueMsP99": 1}}') as Observation['pools'],
      };
    default:
      return { ...seen, stable: { ...seen.stable, requests: 1.5 } };
  }
}

import {
  count,
  dictionary,
  either,
  fields,
  list,
  MISFIT,
  number,
  optional,
  type Shape,
  text,
} from '../control/json-shape.ts';
import type { MetricReading } from './metric-reading.ts';
import type { ArmObservation, Observation } from './observation.ts';
import type { HeadScores } from './score-observation.ts';

const triple =
  <T>(shape: Shape<T>): Shape<readonly [T, T, T]> =>
  (value) => {
    const items = list(shape)(value);
    if (items === MISFIT) return MISFIT;
    const [first, second, third] = items;
    if (items.length !== 3 || first === undefined || second === undefined || third === undefined)
      return MISFIT;
    return [first, second, third];
  };

const armFields = fields({
  requests: count,
  errors: count,
  deadLettered: count,
  deadlineMissed: count,
  over: triple(count),
});

/** No request has one outcome twice, or is late twice. */
const arm: Shape<ArmObservation> = (value) => {
  const read = armFields(value);
  if (read === MISFIT) return MISFIT;
  const { requests, errors, deadLettered, deadlineMissed, over } = read;
  return [errors, deadLettered, deadlineMissed, ...over].every((events) => events <= requests)
    ? read
    : MISFIT;
};

const groups = list(fields({ sum: number(-Number.MAX_VALUE), sumOfSquares: number(0), bins: list(count) }));
const headFields = fields({ edges: list(count), stable: groups, candidate: groups });

/** As many bins in each group as lie between the edges, and as many groups in one arm as in the other. */
const headScores: Shape<HeadScores> = (value) => {
  const read = headFields(value);
  if (read === MISFIT) return MISFIT;
  const { edges, stable, candidate } = read;
  const areBinned = [...stable, ...candidate].every(({ bins }) => bins.length === edges.length + 1);
  return areBinned && stable.length === candidate.length ? read : MISFIT;
};

const anyNumber = number(-Number.MAX_VALUE);
const reading: Shape<MetricReading> = either(
  fields({ series: count, lowest: anyNumber, highest: anyNumber }),
  fields({ failed: text }),
);

const triplet: Shape<readonly [number, number, number]> = triple(number(0));

/** An observation as it may count: whoever makes one, or reads one from the log, has it pass through here. */
export const observationShape: Shape<Observation> = fields({
  atMs: number(0),
  windowMs: number(Number.MIN_VALUE),
  stable: arm,
  canary: arm,
  stableLatencyMs: optional(triplet, undefined),
  shadow: optional(
    fields({
      requests: count,
      changed: count,
      changedOutsideDeclared: count,
      latencyApart: count,
      exceptions: count,
      costUsP99: number(0),
      leaves: dictionary(count),
      projectedUtilisation: dictionary(number(0)),
    }),
    undefined,
  ),
  pools: dictionary(fields({ utilisation: number(0), queueMsP99: number(0) })),
  // Logs of before have none.
  scores: optional(dictionary(headScores), {}),
  metrics: optional(dictionary(reading), {}),
  fingerprint: text,
  refusals: list(text),
  modelsNotReady: optional(list(text), []),
  leftOut: optional(text, undefined),
});

const NOTHING: ArmObservation = {
  requests: 0,
  errors: 0,
  deadLettered: 0,
  deadlineMissed: 0,
  over: [0, 0, 0],
};

/** A window in which nothing was observed at all: it counts as silence, and silence is a hold. */
export function silentWindow(atMs: number, windowMs: number): Observation {
  return {
    atMs,
    windowMs,
    stable: NOTHING,
    canary: NOTHING,
    stableLatencyMs: undefined,
    shadow: undefined,
    pools: {},
    scores: {},
    metrics: {},
    fingerprint: '',
    refusals: [],
    modelsNotReady: [],
  };
}

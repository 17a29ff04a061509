import type { Observation } from '../../core/rollout/observation.ts';
import { silentWindow } from '../../core/rollout/observation-shape.ts';

/** An event is a record; around the look there is little else in it. */
export const LOOK_BYTES_MAX = 1_000_000;

/**
 * The observation as the log can hold it: of one that is too large the scores are left out, and where that is not enough everything else. It says so,
 * and a look that was not seen whole holds the rollout.
 */
export function fitLook(observation: Observation, bytesMax = LOOK_BYTES_MAX): Observation {
  const bytes = bytesOf(observation);
  if (bytes <= bytesMax) return observation;
  const { atMs, windowMs, scores } = observation;
  const of = `${bytes} bytes, at most ${bytesMax} go into the log`;
  const heads = `the scores of ${Object.keys(scores).length} heads were left out of the look: it had ${of}`;
  const withoutScores = { ...observation, scores: {}, leftOut: heads };
  if (bytesOf(withoutScores) <= bytesMax) return withoutScores;
  return { ...silentWindow(atMs, windowMs), leftOut: `the look was left out: it had ${of}` };
}

function bytesOf(observation: Observation): number {
  return Buffer.byteLength(JSON.stringify(observation));
}

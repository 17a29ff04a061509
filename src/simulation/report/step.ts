const STEPS = 200;
const STEP_MS_MIN = 50;

/** How long a step of a run's series is, ms: two hundred of them, none too short to say anything. */
export function stepMsOf(durationMs: number): number {
  return Math.max(STEP_MS_MIN, Math.ceil(durationMs / STEPS));
}

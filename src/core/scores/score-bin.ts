/**
 * Bins for scores of any model: log-linear, as HdrHistogram and circllhist have them. A bin holds the floats of one sign, one exponent and one of
 * 16 equal parts of that octave, so it is at most 6.25 % wide, whether a head says 0.003 or 3 000. The bin is read off the bits of the FP32.
 *
 * Magnitudes below 2^-20 are one bin with 0, those from 2^20 on share the last one of their sign.
 */
const MANTISSA_BITS_KEPT = 4;
const SHIFT = 23 - MANTISSA_BITS_KEPT;
const EXPONENT_BIAS = 127;
const OCTAVES = 20;
/** Of the magnitudes 2^-20 … 2^20, and one below them. */
const LOWEST = (EXPONENT_BIAS - OCTAVES) << MANTISSA_BITS_KEPT;
const HIGHEST = (EXPONENT_BIAS + OCTAVES) << MANTISSA_BITS_KEPT;
/** Of 0; the bins of negative scores lie below it. */
const ZERO_BIN = HIGHEST - LOWEST + 1;
/** Bins are numbered from 0 in the order of their scores. */
export const SCORE_BINS = 2 * ZERO_BIN + 1;

const float = new Float32Array(1);
const bits = new Int32Array(float.buffer);

/** The bin of a finite score: a rising function of it. */
export function scoreBin(score: number): number {
  float[0] = score;
  const magnitude = ((bits[0] ?? 0) & 0x7fffffff) >>> SHIFT;
  if (magnitude < LOWEST) return ZERO_BIN;
  const steps = Math.min(magnitude, HIGHEST) - LOWEST + 1;
  return score < 0 ? ZERO_BIN - steps : ZERO_BIN + steps;
}

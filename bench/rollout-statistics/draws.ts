import type { Generator } from '../../src/core/random/generator.ts';
import { logGamma } from '../../src/core/rollout/log-gamma.ts';

/** Below this mean, draws by inversion take fewer steps than rejection. */
const INVERSION_MEAN_MAX = 10;

/** Box and Muller 1958. */
export function drawNormal(random: Generator): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}

/** Hörmann 1993: PTRS, transformed rejection with squeeze; inversion for small means. */
export function drawPoisson(random: Generator, mean: number): number {
  if (mean <= 0) return 0;
  if (mean < INVERSION_MEAN_MAX) return invertPoisson(random, mean);
  const logMean = Math.log(mean);
  const b = 0.931 + 2.53 * Math.sqrt(mean);
  const a = -0.059 + 0.02483 * b;
  const inverseAlpha = 1.1239 + 1.1328 / (b - 3.4);
  const squeeze = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const u = random.next() - 0.5;
    const v = random.next();
    const us = 0.5 - Math.abs(u);
    const k = Math.floor(((2 * a) / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= squeeze) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const log = Math.log(v) + Math.log(inverseAlpha) - Math.log(a / (us * us) + b);
    if (log <= k * logMean - mean - logGamma(k + 1)) return k;
  }
}

/** Hörmann 1993: BTRS, transformed rejection with squeeze; inversion for small means. */
export function drawBinomial(random: Generator, n: number, chance: number): number {
  if (n <= 0 || chance <= 0) return 0;
  if (chance >= 1) return n;
  if (chance > 0.5) return n - drawBinomial(random, n, 1 - chance);
  if (n * chance < INVERSION_MEAN_MAX) return invertBinomial(random, n, chance);
  const spread = Math.sqrt(n * chance * (1 - chance));
  const b = 1.15 + 2.53 * spread;
  const a = -0.0873 + 0.0248 * b + 0.01 * chance;
  const centre = n * chance + 0.5;
  const squeeze = 0.92 - 4.2 / b;
  for (;;) {
    const u = random.next() - 0.5;
    const v = random.next();
    const us = 0.5 - Math.abs(u);
    const k = Math.floor(((2 * a) / us + b) * u + centre);
    if (us >= 0.07 && v <= squeeze) return k;
    if (k < 0 || k > n) continue;
    const alpha = (2.83 + 5.1 / b) * spread;
    const log = Math.log((v * alpha) / (a / (us * us) + b));
    if (log <= logRelativeToMode(k, n, chance)) return k;
  }
}

/** log of the probability of k, relative to that of the likeliest count. */
function logRelativeToMode(k: number, n: number, chance: number): number {
  const mode = Math.floor((n + 1) * chance);
  const atMode = logGamma(mode + 1) + logGamma(n - mode + 1);
  return atMode - logGamma(k + 1) - logGamma(n - k + 1) + (k - mode) * Math.log(chance / (1 - chance));
}

function invertPoisson(random: Generator, mean: number): number {
  let chance = Math.exp(-mean);
  let rest = random.next();
  let k = 0;
  while (rest > chance && chance > 0) {
    rest -= chance;
    k += 1;
    chance *= mean / k;
  }
  return k;
}

function invertBinomial(random: Generator, n: number, chance: number): number {
  const odds = chance / (1 - chance);
  let mass = (1 - chance) ** n;
  let rest = random.next();
  let k = 0;
  while (rest > mass && k < n) {
    rest -= mass;
    k += 1;
    mass *= (odds * (n - k + 1)) / k;
  }
  return k;
}

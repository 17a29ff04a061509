import { own } from '../../core/own.ts';
import type { RandomStream } from '../../ports/random.ts';
import type { ServiceProfile } from './profiles.ts';

export interface BatchShape {
  requests: number;
  /** ΣN. */
  candidates: number;
  kernel: string;
  memory: string;
  /** Share of non-zero inputs, 0 … 1. */
  density: number;
}

/** Expected service time, ms: (launch + C_R·requests + C_C·candidates) · kernel · memory. */
export function meanServiceMs(profile: ServiceProfile, batch: BatchShape): number {
  const kernel = own(profile.kernels, batch.kernel);
  const memoryFactor = own(profile.memories, batch.memory);
  if (kernel === undefined || memoryFactor === undefined) {
    throw new RangeError(`${profile.accelerator} has no ${batch.kernel} on ${batch.memory}`);
  }
  const base = profile.launchMs + profile.requestMs * batch.requests + profile.candidateMs * batch.candidates;
  return base * (kernel.factor + (kernel.densityFactor ?? 0) * batch.density) * memoryFactor;
}

/** A lognormal factor with mean 1: exp(σz − σ²/2), z standard normal by Box and Muller. Takes two draws. */
export function jitterFactor(sigma: number, random: RandomStream): number {
  const radius = Math.sqrt(-2 * Math.log(1 - random.next()));
  const z = radius * Math.cos(2 * Math.PI * random.next());
  return Math.exp(sigma * z - (sigma * sigma) / 2);
}

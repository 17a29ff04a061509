import type { CostSample } from '../signals/fit-cost.ts';
import type { Compared } from './crossover.ts';

/** What one request alone takes by a kernel, its tensors in a memory domain: fitted to `shapes`, and held against `heldOut`. */
export interface TargetProfile {
  readonly kernel: string;
  readonly memory: string;
  /** As a cost model has them. */
  readonly features: readonly string[];
  readonly coefficients: readonly number[];
  /** On shapes that it was not fitted to, shares of what was measured. */
  readonly medianRelativeError: number;
  readonly p95RelativeError: number;
  readonly shapes: readonly CostSample[];
  readonly heldOut: readonly CostSample[];
}

/** What a batch of requests, of so many candidates each, takes together. */
export interface BatchProfile {
  readonly kernel: string;
  readonly memory: string;
  readonly requests: number;
  readonly candidates: number;
  readonly ms: number;
}

/** The sparse kernel against the dense one, by share of zeros in the candidates' inputs. */
export interface SparseProfile {
  readonly memory: string;
  readonly requests: number;
  readonly candidates: number;
  readonly compared: readonly Compared[];
  /** From this share of zeros on it is the faster one; null where it never was. */
  readonly fasterFromZeros: number | null;
  /** The same as the signal `nonZeroShare` has it, which counts the request's values too. */
  readonly fasterBelowNonZeroShare: number | null;
}

export interface VersionProfile {
  readonly family: string;
  readonly version: string;
  /** Of its graph. */
  readonly digest: string;
  readonly synthetic: boolean;
  /** Rows of a sequence where nothing is known of a request. */
  readonly typicalRows: number;
  readonly candidatesMax: number;
  readonly targets: readonly TargetProfile[];
  readonly batches: readonly BatchProfile[];
  readonly sparse: readonly SparseProfile[];
  /** By kernel that it cannot run: why. */
  readonly refusedKernels: Readonly<Record<string, string>>;
}

/** A version that could not be measured. */
export interface FailedVersion {
  readonly family: string;
  readonly version: string;
  readonly reason: string;
}

/** What the models of a repository take on an accelerator, as `millrace profile` measured it. */
export interface AcceleratorProfile {
  readonly format: 1;
  /** Class of the fleet that it was measured for. */
  readonly accelerator: string;
  readonly backend: string;
  /** Times were drawn from a profile of a device, not measured on it. */
  readonly simulated: boolean;
  readonly machine: string;
  readonly software: string;
  readonly seed: number;
  readonly versions: readonly VersionProfile[];
  readonly failed: readonly FailedVersion[];
}

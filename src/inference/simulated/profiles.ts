import { MillraceError } from '../../core/errors.ts';

/** How long a kernel takes against the dense one. */
export interface KernelProfile {
  /** At a share of non-zero inputs of 0. */
  factor: number;
  /** Added per share of non-zero inputs, 0 … 1. */
  densityFactor?: number;
}

/** Service times of a device, for a small ranking model. */
export interface ServiceProfile {
  accelerator: string;
  /** Per batch: the launch, and the transfer's latency. */
  launchMs: number;
  /** C_R: per request. */
  requestMs: number;
  /** C_C: per candidate. */
  candidateMs: number;
  /** σ of the lognormal factor on every service time; its mean is 1. */
  jitterSigma: number;
  kernels: Readonly<Record<string, KernelProfile>>;
  /** Factor by memory domain; the first one is used where the caller names none. */
  memories: Readonly<Record<string, number>>;
}

const DENSE: KernelProfile = { factor: 1 };
/**
 * 1.2 → 0.9 ms (× 0.75) at 5 % non-zero, even with the dense kernel at 30 % (the published rule sends > 70 % sparse to the sparse
 * pool), slower above.
 */
const SPARSE: KernelProfile = { factor: 0.7, densityFactor: 1 };
/** −0.04 ms of 1.2 ms. */
const BIAS_FUSED: KernelProfile = { factor: 0.967 };
/** −31 % on the FPGA's attention kernel. */
const ATTENTION_ON_FPGA: KernelProfile = { factor: 0.69 };

/** −18 % cycles where small activations stay in cache. */
const CACHED = 0.82;

/**
 * Profiles whose *ratios* follow published figures; no device was measured for them, and what runs on them is labelled as simulated.
 * The kernels' factors are those of a public description of custom routing of inference requests, whose dense kernel takes 1.2 ms on the newer
 * GPU (here: 256 candidates). V100 against A100: their data sheets' memory bandwidths, 900 and 1 555 GB/s. MTIA, FPGA and CPU have no such
 * public ratio for this kind of model: theirs are assumptions (low launch cost and lower throughput; high launch cost and slower dense layers;
 * hardly a launch cost and a fifth of the throughput).
 */
export const PROFILES: Readonly<Record<string, ServiceProfile>> = {
  'gpu-a100': {
    accelerator: 'gpu-a100',
    launchMs: 0.2,
    requestMs: 0.2,
    candidateMs: 0.003125,
    jitterSigma: 0.1,
    kernels: { dense: DENSE, sparse: SPARSE, 'bias-fused': BIAS_FUSED, attention: DENSE },
    memories: { hbm: 1, l2: CACHED },
  },
  'gpu-v100': {
    accelerator: 'gpu-v100',
    launchMs: 0.2,
    requestMs: 0.346,
    candidateMs: 0.0054,
    jitterSigma: 0.12,
    kernels: { dense: DENSE, sparse: SPARSE, 'bias-fused': BIAS_FUSED, attention: DENSE },
    memories: { hbm: 1, l2: CACHED },
  },
  mtia: {
    accelerator: 'mtia',
    launchMs: 0.1,
    requestMs: 0.3,
    candidateMs: 0.0047,
    jitterSigma: 0.08,
    kernels: { dense: DENSE, 'bias-fused': BIAS_FUSED },
    memories: { host: 1, l2: CACHED },
  },
  fpga: {
    accelerator: 'fpga',
    launchMs: 0.3,
    requestMs: 0.3,
    candidateMs: 0.0034,
    jitterSigma: 0.03,
    kernels: { dense: { factor: 1.3 }, attention: ATTENTION_ON_FPGA },
    memories: { host: 1 },
  },
  cpu: {
    accelerator: 'cpu',
    launchMs: 0.02,
    requestMs: 1,
    candidateMs: 0.02,
    jitterSigma: 0.15,
    kernels: { dense: DENSE, sparse: SPARSE },
    memories: { host: 1 },
  },
};

/** @throws MillraceError INVALID_CONFIG where there is no profile of that accelerator class */
export function serviceProfile(accelerator: string): ServiceProfile {
  const profile = Object.hasOwn(PROFILES, accelerator) ? PROFILES[accelerator] : undefined;
  if (profile !== undefined) return profile;
  throw new MillraceError('INVALID_CONFIG', 'there is no service-time profile of this accelerator', {
    value: accelerator,
    allowed: Object.keys(PROFILES).join(', '),
  });
}

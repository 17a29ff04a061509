import type {
  AcceleratorProfile,
  SparseProfile,
  TargetProfile,
  VersionProfile,
} from '../../../../src/core/profile/profile.ts';

export function target(kernel: string, memory: string, base: number, perCandidate: number): TargetProfile {
  return {
    ...{ kernel, memory, features: ['1', 'N'], coefficients: [base, perCandidate] },
    ...{ medianRelativeError: 0, p95RelativeError: 0, shapes: [], heldOut: [] },
  };
}

export function sparse(fasterFromZeros: number | null, belowNonZeroShare: number | null): SparseProfile {
  return {
    ...{ memory: 'host', requests: 1, candidates: 64 },
    compared: [{ zeroShare: 0.999, ratio: fasterFromZeros === null ? 0.5 : 2 }],
    ...{ fasterFromZeros, fasterBelowNonZeroShare: belowNonZeroShare },
  };
}

export function version(
  family: string,
  targets: readonly TargetProfile[],
  more: Partial<VersionProfile> = {},
): VersionProfile {
  return {
    ...{ family, version: '1', digest: 'sha256:0', synthetic: true, typicalRows: 0, candidatesMax: 1_000 },
    ...{ targets, batches: [], sparse: [], refusedKernels: {} },
    ...more,
  };
}

export function profile(
  accelerator: string,
  versions: readonly VersionProfile[],
  more: Partial<AcceleratorProfile> = {},
): AcceleratorProfile {
  return {
    ...{ format: 1 as const, accelerator, backend: 'onnx-cpu', simulated: false },
    ...{ machine: 'a machine', software: 'Node', seed: 1, versions, failed: [] },
    ...more,
  };
}

import fc from 'fast-check';
import type { Fleet } from '../../../../src/core/policy/fleet.ts';
import { NAME } from '../../../../src/core/policy/parse-tree.ts';
import type {
  AcceleratorProfile,
  SparseProfile,
  TargetProfile,
  VersionProfile,
} from '../../../../src/core/profile/profile.ts';

/** Names that YAML or an object could take for something else are among them. */
export const profileName = fc.oneof(
  fc.constantFrom('dense', 'sparse', 'attention', 'host', 'hbm', 'true', 'Null', 'FALSE', 'a.b-c_d'),
  fc.stringMatching(/^[A-Za-z][A-Za-z0-9._-]{0,63}$/).filter((text) => NAME.test(text)),
);
const familyName = fc.constantFrom('ads', 'ranker', 'null', 'feed-2');
const line = fc.string({ unit: 'grapheme', maxLength: 30 }).map((text) => text.replaceAll(/\p{Cc}/gu, '#'));
const positive = fc.double({ min: 1e-6, max: 1e6, noNaN: true });
const notNegative = fc.oneof(fc.constant(0), positive);
const share = fc.double({ min: 0, max: 1, noNaN: true });
const size = fc.nat({ max: 5_000 });
const samples = fc.array(fc.record({ candidates: size, rows: size, ms: positive }), { maxLength: 3 });

function target(kernel: string, memory: string): fc.Arbitrary<TargetProfile> {
  const costs = fc.constantFrom(['1'], ['1', 'N'], ['1', 'N', 'T', 'N*T'], ['N', 'N*N']).chain((features) =>
    fc.record({
      features: fc.constant(features),
      coefficients: fc
        .array(notNegative, { minLength: features.length, maxLength: features.length })
        .map((values) => (values.some((value) => value > 0) ? values : values.map(() => 0.5))),
    }),
  );
  return fc
    .tuple(
      costs,
      fc.record({
        medianRelativeError: notNegative,
        p95RelativeError: notNegative,
        shapes: samples,
        heldOut: samples,
      }),
    )
    .map(([cost, rest]) => ({ kernel, memory, ...cost, ...rest }));
}

function sparse(memory: string): fc.Arbitrary<SparseProfile> {
  return fc.record({
    memory: fc.constant(memory),
    requests: size,
    candidates: size,
    compared: fc.array(fc.record({ zeroShare: share, ratio: notNegative }), { maxLength: 3 }),
    fasterFromZeros: fc.option(share),
    fasterBelowNonZeroShare: fc.option(share),
  });
}

interface Shape {
  readonly accelerator: string;
  readonly kernels: readonly string[];
  readonly memories: readonly string[];
}

function version({ kernels, memories }: Shape, family: string, number: string): fc.Arbitrary<VersionProfile> {
  const targets = kernels.flatMap((kernel) => memories.map((memory) => target(kernel, memory)));
  return fc.record({
    family: fc.constant(family),
    version: fc.constant(number),
    digest: fc.constant('sha256:0'),
    synthetic: fc.boolean(),
    typicalRows: fc.nat({ max: 64 }),
    candidatesMax: fc.integer({ min: 1, max: 3_000 }),
    targets: fc.tuple(...targets),
    batches: fc.constant([]),
    sparse: kernels.includes('sparse')
      ? fc.array(sparse(memories[0] ?? ''), { maxLength: 2 })
      : fc.constant([]),
    refusedKernels: fc.constant({}),
  });
}

export function profileOf(shape: Shape, names: readonly (readonly [string, string])[]) {
  return fc.record<AcceleratorProfile>({
    format: fc.constant(1),
    accelerator: fc.constant(shape.accelerator),
    backend: fc.constant('onnx-cpu'),
    simulated: fc.boolean(),
    machine: line,
    software: line,
    seed: fc.nat(),
    versions: fc.tuple(...names.map(([family, number]) => version(shape, family, number))),
    failed: fc.constant([]),
  });
}

const shapes = fc.uniqueArray(
  fc.record({
    accelerator: profileName,
    kernels: fc.uniqueArray(profileName, { minLength: 1, maxLength: 3 }),
    memories: fc.uniqueArray(profileName, { minLength: 1, maxLength: 2 }),
  }),
  { minLength: 1, maxLength: 3, selector: ({ accelerator }) => accelerator },
);
const versionNames = fc.uniqueArray(
  fc.tuple(
    familyName,
    fc.integer({ min: 1, max: 99 }).map((number) => String(number)),
  ),
  { minLength: 1, maxLength: 3, selector: ([family, number]) => `${family}@${number}` },
);

/** Profiles of the same versions on the accelerators of a fleet. */
export const profilesOfFleet = fc.tuple(shapes, versionNames).chain(([all, names]) =>
  fc.record({
    fleet: fc.constant<Fleet>({
      name: 'of-a-test',
      accelerators: new Map(
        all.map(({ accelerator, kernels, memories }) => [accelerator, { kernels, memories, pools: [] }]),
      ),
    }),
    profiles: fc.tuple(...all.map((shape) => profileOf(shape, names))),
  }),
);

import { topicNames } from '../../src/contracts/topics.ts';
import type { Fleet } from '../../src/core/policy/fleet.ts';
import { parseFleet } from '../../src/core/policy/parse-fleet.ts';
import { DEFAULT_REQUEST_LIMITS } from '../../src/core/request/limits.ts';
import { costModels } from '../../src/inference/cost-models.ts';
import { openRepository } from '../../src/inference/repository/open-repository.ts';
import type { ServiceProfile } from '../../src/inference/simulated/profiles.ts';
import type { FeatureExtractorConfig } from '../../src/stages/feature-extractor/stage.ts';
import type { ActivePolicy } from '../../src/stages/request-router/active-policy.ts';
import type { RequestRouterConfig } from '../../src/stages/request-router/stage.ts';
import { compileChecked, digestOf } from '../../src/wiring/policy-files.ts';

/** Of topics with many partitions. */
export const PARTITIONS = 2;
export const topics = topicNames('sim');
export const FLEET = parseFleet(
  Buffer.from(`
apiVersion: millrace/v1
kind: Fleet
name: sim
accelerators:
  cpu: {kernels: [dense], memories: [host], pools: [{pool: cpu, capacityClass: dedicated}]}
  gpu-a100: {kernels: [dense], memories: [host], pools: [{pool: gpu, capacityClass: dedicated}]}
`),
);
export const SLOTS: ReadonlyMap<string, number> = new Map([
  ['cpu', 2],
  ['gpu', 1],
]);

/** A text of the policy that all routers follow. Wide requests are the GPU's; each class stands in for the other. */
export function policyText(version: number): Buffer {
  return Buffer.from(`
apiVersion: millrace/v1
kind: RoutingPolicy
name: sim
version: ${version}
signals: {candidateCount: int}
tree:
  - {id: wide, when: candidateCount > 12, to: {accelerator: gpu-a100, kernel: dense, memory: host}, fallback: [cpu]}
  - {id: rest, to: {accelerator: cpu, kernel: dense, memory: host}, fallback: [gpu-a100]}
`);
}

/** The policy of this text as routers start with it. */
export function builtIn(text: Buffer, fleet: Fleet): ActivePolicy {
  const compiled = compileChecked(text, fleet);
  const { name, version } = compiled.document;
  return { ref: { digest: digestOf(text), name, version }, epoch: 0, compiled, source: 'built-in' };
}

/** A batch of four small requests takes about 19 ms. */
export const PROFILE: ServiceProfile = {
  accelerator: 'sim',
  launchMs: 10,
  requestMs: 2,
  candidateMs: 0.02,
  jitterSigma: 0.3,
  kernels: { dense: { factor: 1 } },
  memories: { host: 1 },
};

/** What an installation is made of. */
export interface Layout {
  readonly fleet: Fleet;
  /** Pool → slots of its dispatch topic, each with a worker of its own. */
  readonly slots: ReadonlyMap<string, number>;
  /** The policy that all routers start with, and follow by its name. */
  readonly builtIn: ActivePolicy;
  /** Of every device. */
  readonly profile: ServiceProfile;
  /** Period of the workers' metrics. */
  readonly windowMs: number;
}

export const LAYOUT: Layout = {
  fleet: FLEET,
  slots: SLOTS,
  builtIn: builtIn(policyText(1), FLEET),
  profile: PROFILE,
  windowMs: 1_000,
};

export const repository = await openRepository('models/repository');
export const costs = costModels(repository);
export const EXTRACTOR: FeatureExtractorConfig = {
  ingress: [topics.ingress()],
  families: new Map(repository.families.map(({ family, contract }) => [family, contract])),
  limits: { ...DEFAULT_REQUEST_LIMITS, resultPartitions: PARTITIONS },
  deadLetterPayload: 'full',
  unacknowledgedMax: 50,
  tries: 3,
  forgetWorkersMs: 10_000,
};
export const ROUTER: Omit<RequestRouterConfig, 'router' | 'ackPartition' | 'poolsOf'> = {
  creditsMax: 64,
  statusStaleMs: 500,
  giveUpGraceMs: 500,
  unacknowledgedMax: 50,
  deadLetterPayload: 'full',
  tries: 3,
  windowMs: 1_000,
};

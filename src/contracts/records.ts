// Written by schemas/generate.ts from schemas/*.avsc. To change it, change a schema and run `node schemas/generate.ts`.

/** T, with the fields K optional. */
type WithDefaults<T, K extends keyof T> = Omit<T, K> & { [P in K]?: T[P] | undefined };

const EMPTY = Buffer.alloc(0);

export const COMMAND_TYPES = [
  'UNKNOWN',
  'PUBLISH_POLICY',
  'START',
  'PROMOTE',
  'HOLD',
  'ABORT',
  'ROLL_BACK',
  'PUBLISH_MODEL',
  'SET_TARGETS',
  'OFFER_CAPACITY',
  'RECLAIM_CAPACITY',
  'TUNE',
  'RESEED',
  'REVOKE_KEY',
] as const;
/** What to do. */
export type CommandType = (typeof COMMAND_TYPES)[number];

/** Detached ed25519 signature over the exact bytes of body, with scope, version, notAfter and nonce. */
export interface Signature {
  /** Key. */
  keyId: string;
  /** Not to be accepted later. */
  notAfter: number;
  /** Used once. */
  nonce: string;
  /** Envelope version. */
  version: number;
  /** Signature. */
  bytes: Buffer;
}

/** Any Signature, its fields in the schema's order; what has a default may be left out. */
export function makeSignature(fields: Signature): Signature {
  return {
    keyId: fields.keyId,
    notAfter: fields.notAfter,
    nonce: fields.nonce,
    version: fields.version,
    bytes: fields.bytes,
  };
}

/** A command to the controller, signed over exactly these bytes of `body`. */
export interface ControlCommand {
  /** For audit and de-duplication. */
  commandId: string;
  /** What it acts on, for example policy/feed-router. */
  scope: string;
  /** What to do. */
  type: CommandType;
  /** What the command needs: for PUBLISH_POLICY the policy document. */
  body: Buffer;
  /** Who sent it. */
  actor: string;
  /** Absent is accepted only where the config says so. */
  signature: Signature | null;
  /** Signature of a second person, by another key: an emergency override to live needs both. */
  coSignature: Signature | null;
}

/** Any ControlCommand, its fields in the schema's order; what has a default may be left out. */
export function makeControlCommand(
  fields: WithDefaults<ControlCommand, 'body' | 'actor' | 'signature' | 'coSignature'>,
): ControlCommand {
  return {
    commandId: fields.commandId,
    scope: fields.scope,
    type: fields.type,
    body: fields.body === undefined ? EMPTY : fields.body,
    actor: fields.actor === undefined ? '' : fields.actor,
    signature: fields.signature === undefined ? null : fields.signature,
    coSignature: fields.coSignature === undefined ? null : fields.coSignature,
  };
}

/** What the controller decided, and why. */
export interface ControlEvent {
  /** For de-duplication. */
  eventId: string;
  /** As in the command. */
  scope: string;
  /** What happened: policy-published, command-refused, … */
  type: string;
  /** Leadership. */
  term: number;
  /** Epoch of the pointer after it. */
  epoch: number;
  /** Who caused it. */
  actor: string;
  /** Command. */
  commandId: string;
  /** sha256:<hex> of the command's bytes. */
  commandDigest: string;
  /** Its offset on the control topic. */
  commandOffset: number;
  /** False for a refusal. */
  accepted: boolean;
  /** Why it was refused. */
  reason: string | null;
  /** JSON. */
  evidence: string;
  /** When, ms since the epoch. */
  occurredAt: number;
}

/** Any ControlEvent, its fields in the schema's order; what has a default may be left out. */
export function makeControlEvent(
  fields: WithDefaults<
    ControlEvent,
    'term' | 'epoch' | 'commandId' | 'commandDigest' | 'commandOffset' | 'accepted' | 'reason' | 'evidence'
  >,
): ControlEvent {
  return {
    eventId: fields.eventId,
    scope: fields.scope,
    type: fields.type,
    term: fields.term === undefined ? 0 : fields.term,
    epoch: fields.epoch === undefined ? 0 : fields.epoch,
    actor: fields.actor,
    commandId: fields.commandId === undefined ? '' : fields.commandId,
    commandDigest: fields.commandDigest === undefined ? '' : fields.commandDigest,
    commandOffset: fields.commandOffset === undefined ? -1 : fields.commandOffset,
    accepted: fields.accepted === undefined ? false : fields.accepted,
    reason: fields.reason === undefined ? null : fields.reason,
    evidence: fields.evidence === undefined ? '' : fields.evidence,
    occurredAt: fields.occurredAt,
  };
}

/** What a worker completed for one router, and how busy it is. */
export interface DispatchAck {
  /** Router that dispatched. */
  router: string;
  /** Worker. */
  worker: string;
  /** Changes with every start of the worker. */
  incarnation: string;
  /** Pool. */
  pool: string;
  /** Partition of the dispatch topic. */
  slot: number;
  /** Sequences of this router that ended since the last acknowledgement. */
  completed: number[];
  /** For each completed sequence: milliseconds from its arrival at the worker to its end. The round trip less this is transport. */
  sojournMs: number[];
  /** Recent mean time of one batch on the accelerator. */
  serviceMs: number;
  /** Highest sequence of this router that reached the worker's queue on this slot; -1 where none. */
  lastSequenceSeen: number;
  /** Predicted work that waits at the worker or is computed, less what is done of it. */
  queuedPredictedMs: number;
  /** Predicted work that ever entered the queue, from all routers. */
  enqueuedPredictedMs: number;
  /** Predicted work that ever completed. */
  completedPredictedMs: number;
  /** Time that it took. */
  busyMs: number;
  /** When this was read, on the worker's monotonic clock. */
  snapshotMs: number;
  /** Most requests that the worker runs in one batch. */
  batchRequests: number;
  /** Routers that dispatched to the slot of late, this one among them: the batch is shared by them. */
  routers: number;
}

/** Any DispatchAck, its fields in the schema's order; what has a default may be left out. */
export function makeDispatchAck(
  fields: WithDefaults<
    DispatchAck,
    | 'completed'
    | 'sojournMs'
    | 'serviceMs'
    | 'lastSequenceSeen'
    | 'queuedPredictedMs'
    | 'enqueuedPredictedMs'
    | 'completedPredictedMs'
    | 'busyMs'
    | 'snapshotMs'
    | 'batchRequests'
    | 'routers'
  >,
): DispatchAck {
  return {
    router: fields.router,
    worker: fields.worker,
    incarnation: fields.incarnation,
    pool: fields.pool,
    slot: fields.slot,
    completed: fields.completed === undefined ? [] : fields.completed,
    sojournMs: fields.sojournMs === undefined ? [] : fields.sojournMs,
    serviceMs: fields.serviceMs === undefined ? 0 : fields.serviceMs,
    lastSequenceSeen: fields.lastSequenceSeen === undefined ? -1 : fields.lastSequenceSeen,
    queuedPredictedMs: fields.queuedPredictedMs === undefined ? 0 : fields.queuedPredictedMs,
    enqueuedPredictedMs: fields.enqueuedPredictedMs === undefined ? 0 : fields.enqueuedPredictedMs,
    completedPredictedMs: fields.completedPredictedMs === undefined ? 0 : fields.completedPredictedMs,
    busyMs: fields.busyMs === undefined ? 0 : fields.busyMs,
    snapshotMs: fields.snapshotMs === undefined ? 0 : fields.snapshotMs,
    batchRequests: fields.batchRequests === undefined ? 1 : fields.batchRequests,
    routers: fields.routers === undefined ? 1 : fields.routers,
  };
}

/** A request is named by where it lies on its ingress topic. */
export interface Identity {
  /** Ingress topic. */
  topic: string;
  /** Its partition. */
  partition: number;
  /** Its offset. */
  offset: number;
}

/** Any Identity, its fields in the schema's order; what has a default may be left out. */
export function makeIdentity(fields: Identity): Identity {
  return {
    topic: fields.topic,
    partition: fields.partition,
    offset: fields.offset,
  };
}

export const VARIANTS = ['BASELINE', 'ENHANCED'] as const;
/** Which model of a family scores a request. */
export type Variant = (typeof VARIANTS)[number];

export const ARMS = ['STABLE', 'CANARY'] as const;
/** Side of a rollout that decided. */
export type Arm = (typeof ARMS)[number];

/** Which policy decided, and how. */
export interface PolicyDecision {
  /** sha256:<hex> of the policy. */
  digest: string;
  /** Policy name. */
  name: string;
  /** Policy version. */
  version: number;
  /** Epoch of the pointer. */
  epoch: number;
  /** Leaf that named the target. */
  leaf: string;
  /** Side of a rollout. */
  arm: Arm;
  /** Whether the statistics of a rollout count it; requests of the heaviest bucket keys are left out. */
  analysed: boolean;
}

/** Any PolicyDecision, its fields in the schema's order; what has a default may be left out. */
export function makePolicyDecision(fields: WithDefaults<PolicyDecision, 'arm' | 'analysed'>): PolicyDecision {
  return {
    digest: fields.digest,
    name: fields.name,
    version: fields.version,
    epoch: fields.epoch,
    leaf: fields.leaf,
    arm: fields.arm === undefined ? 'STABLE' : fields.arm,
    analysed: fields.analysed === undefined ? true : fields.analysed,
  };
}

/** A request on its way to one slot of one pool. */
export interface Dispatch {
  /** As in the request. */
  requestId: string;
  /** Where the request lies on ingress. */
  identity: Identity;
  /** 1, or higher for a hedge or a rescue. */
  attempt: number;
  /** Accelerator class of the target. */
  accelerator: string;
  /** Pool. */
  pool: string;
  /** Kernel of the target. */
  kernel: string;
  /** Memory domain of the target. */
  memory: string;
  /** Model family. */
  model: string;
  /** Version that must serve; the pool's newest of the variant where absent. */
  modelVersion: string | null;
  /** Version on its way to live, which scores the request beside it where the worker has nothing else to do; nothing comes of its scores but statistics. */
  shadowVersion: string | null;
  /** Variant that must serve. */
  variant: Variant;
  /** Candidates [0, scoreLimit) are scored: baseline plus granted. */
  scoreLimit: number;
  /** As in the request. */
  baselineCandidates: number;
  /** The decision. */
  policy: PolicyDecision;
  /** Why the target is not the leaf's first choice. */
  fallback: string | null;
  /** Why the answer can only be DEGRADED: a kernel other than the one that the leaf named. */
  degradation: string | null;
  /** Attribution to echo. */
  attribution: Buffer | null;
  /** Budget of the request as it arrived. */
  budgetMs: number;
  /** What was left of it when this record was produced. */
  budgetRemainingMs: number;
  /** Time spent in topics so far. */
  inTopicMs: number;
  /** Time spent in the extractor. */
  extractMs: number;
  /** Time spent in the router. */
  routeMs: number;
  /** Predicted service time at speed 1. */
  predictedMs: number;
  /** 0 highest … 9. */
  priority: number;
  /** Predicted worth. */
  value: number;
  /** Router that dispatched. */
  router: string;
  /** Its partition of the acks topic. */
  ackPartition: number;
  /** Rises by one per dispatch of this router. */
  sequence: number;
  /** As in the request. */
  resultPartition: number | null;
  /** JSON trace of the decision, where the request asked for it. */
  trace: string | null;
  /** Fingerprint of the schema that the payload was written with: CRC-64-AVRO, 16 hexadecimal digits. Empty where it is not known; then the id in the payload's frame says which. */
  payloadSchema: string;
  /** The ingress record's value, frame included: byte for byte, or with its candidate tensors cut to their first scoreLimit candidates. */
  payload: Buffer;
}

/** Any Dispatch, its fields in the schema's order; what has a default may be left out. */
export function makeDispatch(
  fields: WithDefaults<
    Dispatch,
    | 'attempt'
    | 'modelVersion'
    | 'shadowVersion'
    | 'variant'
    | 'fallback'
    | 'degradation'
    | 'attribution'
    | 'budgetMs'
    | 'budgetRemainingMs'
    | 'inTopicMs'
    | 'extractMs'
    | 'routeMs'
    | 'predictedMs'
    | 'priority'
    | 'value'
    | 'ackPartition'
    | 'resultPartition'
    | 'trace'
    | 'payloadSchema'
  >,
): Dispatch {
  return {
    requestId: fields.requestId,
    identity: fields.identity,
    attempt: fields.attempt === undefined ? 1 : fields.attempt,
    accelerator: fields.accelerator,
    pool: fields.pool,
    kernel: fields.kernel,
    memory: fields.memory,
    model: fields.model,
    modelVersion: fields.modelVersion === undefined ? null : fields.modelVersion,
    shadowVersion: fields.shadowVersion === undefined ? null : fields.shadowVersion,
    variant: fields.variant === undefined ? 'BASELINE' : fields.variant,
    scoreLimit: fields.scoreLimit,
    baselineCandidates: fields.baselineCandidates,
    policy: fields.policy,
    fallback: fields.fallback === undefined ? null : fields.fallback,
    degradation: fields.degradation === undefined ? null : fields.degradation,
    attribution: fields.attribution === undefined ? null : fields.attribution,
    budgetMs: fields.budgetMs === undefined ? 0 : fields.budgetMs,
    budgetRemainingMs: fields.budgetRemainingMs === undefined ? 0 : fields.budgetRemainingMs,
    inTopicMs: fields.inTopicMs === undefined ? 0 : fields.inTopicMs,
    extractMs: fields.extractMs === undefined ? 0 : fields.extractMs,
    routeMs: fields.routeMs === undefined ? 0 : fields.routeMs,
    predictedMs: fields.predictedMs === undefined ? 0 : fields.predictedMs,
    priority: fields.priority === undefined ? 5 : fields.priority,
    value: fields.value === undefined ? 0 : fields.value,
    router: fields.router,
    ackPartition: fields.ackPartition === undefined ? -1 : fields.ackPartition,
    sequence: fields.sequence,
    resultPartition: fields.resultPartition === undefined ? null : fields.resultPartition,
    trace: fields.trace === undefined ? null : fields.trace,
    payloadSchema: fields.payloadSchema === undefined ? '' : fields.payloadSchema,
    payload: fields.payload,
  };
}

export const OUTCOME_TYPES = ['UNKNOWN', 'IMPRESSION', 'CLICK', 'CONVERSION', 'PROXY', 'RETRACT'] as const;
/** Kind of feedback. */
export type OutcomeType = (typeof OUTCOME_TYPES)[number];

/** What came of a result. */
export interface Outcome {
  /** For de-duplication. */
  outcomeId: string;
  /** Kind of feedback. */
  type: OutcomeType;
  /** Echo of the result's token. */
  attributionToken: string;
  /** For people. */
  requestId: string;
  /** Candidate, as text. */
  candidateId: string | null;
  /** Position shown. */
  position: number | null;
  /** Worth. */
  reward: number;
  /** When it happened, ms since the epoch. */
  occurredAt: number;
}

/** Any Outcome, its fields in the schema's order; what has a default may be left out. */
export function makeOutcome(
  fields: WithDefaults<Outcome, 'attributionToken' | 'requestId' | 'candidateId' | 'position' | 'reward'>,
): Outcome {
  return {
    outcomeId: fields.outcomeId,
    type: fields.type,
    attributionToken: fields.attributionToken === undefined ? '' : fields.attributionToken,
    requestId: fields.requestId === undefined ? '' : fields.requestId,
    candidateId: fields.candidateId === undefined ? null : fields.candidateId,
    position: fields.position === undefined ? null : fields.position,
    reward: fields.reward === undefined ? 0 : fields.reward,
    occurredAt: fields.occurredAt,
  };
}

export const CAPACITY_CLASSES = ['DEDICATED', 'OPPORTUNISTIC'] as const;
/** dedicated is sized for baseline; opportunistic may vanish at any time. */
export type CapacityClass = (typeof CAPACITY_CLASSES)[number];

/** A model version that the worker can run. */
export interface ModelServed {
  /** Family. */
  family: string;
  /** Version. */
  version: string;
  /** Variant. */
  variant: Variant;
}

/** Any ModelServed, its fields in the schema's order; what has a default may be left out. */
export function makeModelServed(fields: ModelServed): ModelServed {
  return {
    family: fields.family,
    version: fields.version,
    variant: fields.variant,
  };
}

export const VERSION_STATUSES = ['UNKNOWN', 'LOADING', 'READY', 'FAILED'] as const;
/** READY: its files were fetched and checked, it is loaded, and its golden cases hold. */
export type VersionStatus = (typeof VERSION_STATUSES)[number];

/** A published model version, as this worker has it. */
export interface PublishedVersion {
  /** Family. */
  family: string;
  /** Version. */
  version: string;
  /** Variant, once READY. */
  variant: Variant;
  /** sha256:<hex> of the manifest of its files. */
  digest: string;
  /** Whether the worker can run it. */
  status: VersionStatus;
  /** Why it is FAILED, or still LOADING. */
  reason: string;
}

/** Any PublishedVersion, its fields in the schema's order; what has a default may be left out. */
export function makePublishedVersion(
  fields: WithDefaults<PublishedVersion, 'variant' | 'digest' | 'status' | 'reason'>,
): PublishedVersion {
  return {
    family: fields.family,
    version: fields.version,
    variant: fields.variant === undefined ? 'BASELINE' : fields.variant,
    digest: fields.digest === undefined ? '' : fields.digest,
    status: fields.status === undefined ? 'UNKNOWN' : fields.status,
    reason: fields.reason === undefined ? '' : fields.reason,
  };
}

/** Heartbeat of a worker. */
export interface PoolStatus {
  /** Pool. */
  pool: string;
  /** Its capacity class. */
  capacityClass: CapacityClass;
  /** Worker. */
  worker: string;
  /** Changes with every start. */
  incarnation: string;
  /** Rises by one per heartbeat. */
  sequence: number;
  /** Accelerator class. */
  accelerator: string;
  /** Backend. */
  backend: string;
  /** True where service times are simulated. */
  simulated: boolean;
  /** Partitions of the dispatch topic that it holds. */
  slots: number[];
  /** Kernels. */
  kernels: string[];
  /** Memory domains. */
  memories: string[];
  /** What it can run for requests and policies that name no version. */
  models: ModelServed[];
  /** Published versions that the worker was told of; those that are READY serve requests and policies that name them. */
  published: PublishedVersion[];
  /** Epoch of the catalogue of published versions that it follows; 0 for none. */
  catalogueEpoch: number;
  /** Work per time against nominal. */
  speed: number;
  /** Most requests that it runs in one batch. */
  batchRequests: number;
  /** Predicted work that waits or is computed, less what is done of it. */
  queuedPredictedMs: number;
  /** Share of the predicted work since the last heartbeat that was refused or dropped in an overload, 0 … 1. */
  sheddingLevel: number;
  /** Share of the time since the last heartbeat that it computed, 0 … 1. */
  utilisation: number;
  /** Version of the worker's code. */
  build: string;
  /** Shedding holds the actuators. */
  saturated: boolean;
}

/** Any PoolStatus, its fields in the schema's order; what has a default may be left out. */
export function makePoolStatus(
  fields: WithDefaults<
    PoolStatus,
    | 'sequence'
    | 'simulated'
    | 'slots'
    | 'kernels'
    | 'memories'
    | 'models'
    | 'published'
    | 'catalogueEpoch'
    | 'speed'
    | 'batchRequests'
    | 'queuedPredictedMs'
    | 'sheddingLevel'
    | 'utilisation'
    | 'build'
    | 'saturated'
  >,
): PoolStatus {
  return {
    pool: fields.pool,
    capacityClass: fields.capacityClass,
    worker: fields.worker,
    incarnation: fields.incarnation,
    sequence: fields.sequence === undefined ? 0 : fields.sequence,
    accelerator: fields.accelerator,
    backend: fields.backend,
    simulated: fields.simulated === undefined ? false : fields.simulated,
    slots: fields.slots === undefined ? [] : fields.slots,
    kernels: fields.kernels === undefined ? [] : fields.kernels,
    memories: fields.memories === undefined ? [] : fields.memories,
    models: fields.models === undefined ? [] : fields.models,
    published: fields.published === undefined ? [] : fields.published,
    catalogueEpoch: fields.catalogueEpoch === undefined ? 0 : fields.catalogueEpoch,
    speed: fields.speed === undefined ? 1 : fields.speed,
    batchRequests: fields.batchRequests === undefined ? 1 : fields.batchRequests,
    queuedPredictedMs: fields.queuedPredictedMs === undefined ? 0 : fields.queuedPredictedMs,
    sheddingLevel: fields.sheddingLevel === undefined ? 0 : fields.sheddingLevel,
    utilisation: fields.utilisation === undefined ? 0 : fields.utilisation,
    build: fields.build === undefined ? '' : fields.build,
    saturated: fields.saturated === undefined ? false : fields.saturated,
  };
}

export const OPT_OUTS = ['UNKNOWN', 'RMA', 'SBM', 'EXPLORE'] as const;
/** Optional treatment. */
export type OptOut = (typeof OPT_OUTS)[number];

/** A request with the signals read off it, and its original bytes. */
export interface RoutableRequest {
  /** As in the request. */
  requestId: string;
  /** Where the request lies on ingress. */
  identity: Identity;
  /** Model family. */
  model: string;
  /** Version where the request pinned one. */
  modelVersion: string | null;
  /** Signals by name, and the request's hints. NaN where a signal could not be computed. */
  signals: Record<string, number>;
  /** Version of the signal table. */
  signalsVersion: number;
  /** What decoding, checking and the signals cost, microseconds. */
  extractionUs: number;
  /** Budget of the request as it arrived. */
  budgetMs: number;
  /** What was left of it when this record was produced. */
  budgetRemainingMs: number;
  /** Time spent in topics so far. */
  inTopicMs: number;
  /** Time spent in the extractor. */
  extractMs: number;
  /** 0 highest … 9. */
  priority: number;
  /** Predicted worth; 0 where the request gave none. */
  value: number;
  /** As in the request; requestId where absent. */
  bucketKey: string;
  /** As in the request. */
  region: string | null;
  /** N. */
  candidateCount: number;
  /** As in the request. */
  baselineCandidates: number;
  /** As in the request. */
  candidateValues: Buffer | null;
  /** Allow-listed context. */
  context: Record<string, string>;
  /** As in the request. */
  experiments: Record<string, string>;
  /** As in the request. */
  optOut: OptOut[];
  /** As in the request. */
  pin: string | null;
  /** As in the request. */
  resultPartition: number | null;
  /** As in the request. */
  explain: boolean;
  /** Fingerprint of the schema that the payload was written with: CRC-64-AVRO, 16 hexadecimal digits. Empty where it is not known; then the id in the payload's frame says which. */
  payloadSchema: string;
  /** The ingress record's value, byte for byte, frame included. Empty where extractor and router are fused and the record is published for observers only. */
  payload: Buffer;
}

/** Any RoutableRequest, its fields in the schema's order; what has a default may be left out. */
export function makeRoutableRequest(
  fields: WithDefaults<
    RoutableRequest,
    | 'modelVersion'
    | 'signals'
    | 'signalsVersion'
    | 'extractionUs'
    | 'budgetMs'
    | 'budgetRemainingMs'
    | 'inTopicMs'
    | 'extractMs'
    | 'priority'
    | 'value'
    | 'bucketKey'
    | 'region'
    | 'candidateValues'
    | 'context'
    | 'experiments'
    | 'optOut'
    | 'pin'
    | 'resultPartition'
    | 'explain'
    | 'payloadSchema'
  >,
): RoutableRequest {
  return {
    requestId: fields.requestId,
    identity: fields.identity,
    model: fields.model,
    modelVersion: fields.modelVersion === undefined ? null : fields.modelVersion,
    signals: fields.signals === undefined ? {} : fields.signals,
    signalsVersion: fields.signalsVersion === undefined ? 1 : fields.signalsVersion,
    extractionUs: fields.extractionUs === undefined ? 0 : fields.extractionUs,
    budgetMs: fields.budgetMs === undefined ? 0 : fields.budgetMs,
    budgetRemainingMs: fields.budgetRemainingMs === undefined ? 0 : fields.budgetRemainingMs,
    inTopicMs: fields.inTopicMs === undefined ? 0 : fields.inTopicMs,
    extractMs: fields.extractMs === undefined ? 0 : fields.extractMs,
    priority: fields.priority === undefined ? 5 : fields.priority,
    value: fields.value === undefined ? 0 : fields.value,
    bucketKey: fields.bucketKey === undefined ? '' : fields.bucketKey,
    region: fields.region === undefined ? null : fields.region,
    candidateCount: fields.candidateCount,
    baselineCandidates: fields.baselineCandidates,
    candidateValues: fields.candidateValues === undefined ? null : fields.candidateValues,
    context: fields.context === undefined ? {} : fields.context,
    experiments: fields.experiments === undefined ? {} : fields.experiments,
    optOut: fields.optOut === undefined ? [] : fields.optOut,
    pin: fields.pin === undefined ? null : fields.pin,
    resultPartition: fields.resultPartition === undefined ? null : fields.resultPartition,
    explain: fields.explain === undefined ? false : fields.explain,
    payloadSchema: fields.payloadSchema === undefined ? '' : fields.payloadSchema,
    payload: fields.payload,
  };
}

/** What the shadow policy would have changed. */
export interface LeafDivergence {
  /** Leaf of the live policy. */
  leaf: string;
  /** Requests. */
  requests: number;
  /** Decided otherwise. */
  changed: number;
  /** Predicted latency apart by more than 5 %. */
  latencyRatioOver: number;
  /** Decided otherwise, and ending in a leaf that the candidate does not declare to change. */
  changedUndeclared: number;
  /** Predicted latency apart by more than 5 %, and ending in a leaf that the candidate does not declare to change. */
  latencyRatioOverUndeclared: number;
}

/** Any LeafDivergence, its fields in the schema's order; what has a default may be left out. */
export function makeLeafDivergence(
  fields: WithDefaults<LeafDivergence, 'changedUndeclared' | 'latencyRatioOverUndeclared'>,
): LeafDivergence {
  return {
    leaf: fields.leaf,
    requests: fields.requests,
    changed: fields.changed,
    latencyRatioOver: fields.latencyRatioOver,
    changedUndeclared: fields.changedUndeclared === undefined ? 0 : fields.changedUndeclared,
    latencyRatioOverUndeclared:
      fields.latencyRatioOverUndeclared === undefined ? 0 : fields.latencyRatioOverUndeclared,
  };
}

/** Requests of one arm; those that are analysed, or those that are not. */
export interface ArmWindow {
  /** Arm. */
  arm: Arm;
  /** Whether the statistics of a rollout count these requests. */
  analysed: boolean;
  /** Dispatched, or ended in the router. */
  requests: number;
  /** Of those that ended in the router, by outcome. */
  outcomes: Record<string, number>;
  /** Refusals and failures by code. */
  errors: Record<string, number>;
}

/** Any ArmWindow, its fields in the schema's order; what has a default may be left out. */
export function makeArmWindow(
  fields: WithDefaults<ArmWindow, 'arm' | 'analysed' | 'requests' | 'outcomes' | 'errors'>,
): ArmWindow {
  return {
    arm: fields.arm === undefined ? 'STABLE' : fields.arm,
    analysed: fields.analysed === undefined ? true : fields.analysed,
    requests: fields.requests === undefined ? 0 : fields.requests,
    outcomes: fields.outcomes === undefined ? {} : fields.outcomes,
    errors: fields.errors === undefined ? {} : fields.errors,
  };
}

/** What one router did in one window. */
export interface RouterWindow {
  /** Router. */
  router: string;
  /** Rises by one per window. */
  sequence: number;
  /** Start, ms since the epoch. */
  windowStartMs: number;
  /** Length. */
  windowMs: number;
  /** Policy in force at the end of the window. */
  policyDigest: string;
  /** Its epoch. */
  policyEpoch: number;
  /** Requests per arm: dispatched, or ended in the router. */
  exposure: Record<string, number>;
  /** Requests per leaf. */
  leaves: Record<string, number>;
  /** Dispatches per pool. */
  pools: Record<string, number>;
  /** Shadow divergence per leaf. */
  shadow: LeafDivergence[];
  /** Refusals and failures by code. */
  errors: Record<string, number>;
  /** Extra candidates granted. */
  granted: number;
  /** Optional work shed. */
  shed: number;
  /** Re-dispatches. */
  hedges: number;
  /** Workers suspected. */
  suspicions: number;
  /** Decisions that waited for a credit. */
  creditStalls: number;
  /** Policy on its way to live that was obeyed at the end of the window, in shadow or as canary. */
  candidateDigest: string | null;
  /** Requests by arm, for the statistics of a rollout. */
  arms: ArmWindow[];
  /** Requests on which the candidate threw. */
  shadowExceptions: number;
  /** DDSketch (protobuf) of what a decision of the candidate cost, microseconds, sampled. */
  shadowCostSketch: Buffer;
  /** Requests per leaf of the candidate, had it decided. */
  shadowLeaves: Record<string, number>;
  /** Utilisation of each pool by this router's requests if the candidate decided them all, 0 …; add up the routers. */
  projectedUtilisation: Record<string, number>;
}

/** Any RouterWindow, its fields in the schema's order; what has a default may be left out. */
export function makeRouterWindow(
  fields: WithDefaults<
    RouterWindow,
    | 'sequence'
    | 'policyEpoch'
    | 'exposure'
    | 'leaves'
    | 'pools'
    | 'shadow'
    | 'errors'
    | 'granted'
    | 'shed'
    | 'hedges'
    | 'suspicions'
    | 'creditStalls'
    | 'candidateDigest'
    | 'arms'
    | 'shadowExceptions'
    | 'shadowCostSketch'
    | 'shadowLeaves'
    | 'projectedUtilisation'
  >,
): RouterWindow {
  return {
    router: fields.router,
    sequence: fields.sequence === undefined ? 0 : fields.sequence,
    windowStartMs: fields.windowStartMs,
    windowMs: fields.windowMs,
    policyDigest: fields.policyDigest,
    policyEpoch: fields.policyEpoch === undefined ? 0 : fields.policyEpoch,
    exposure: fields.exposure === undefined ? {} : fields.exposure,
    leaves: fields.leaves === undefined ? {} : fields.leaves,
    pools: fields.pools === undefined ? {} : fields.pools,
    shadow: fields.shadow === undefined ? [] : fields.shadow,
    errors: fields.errors === undefined ? {} : fields.errors,
    granted: fields.granted === undefined ? 0 : fields.granted,
    shed: fields.shed === undefined ? 0 : fields.shed,
    hedges: fields.hedges === undefined ? 0 : fields.hedges,
    suspicions: fields.suspicions === undefined ? 0 : fields.suspicions,
    creditStalls: fields.creditStalls === undefined ? 0 : fields.creditStalls,
    candidateDigest: fields.candidateDigest === undefined ? null : fields.candidateDigest,
    arms: fields.arms === undefined ? [] : fields.arms,
    shadowExceptions: fields.shadowExceptions === undefined ? 0 : fields.shadowExceptions,
    shadowCostSketch: fields.shadowCostSketch === undefined ? EMPTY : fields.shadowCostSketch,
    shadowLeaves: fields.shadowLeaves === undefined ? {} : fields.shadowLeaves,
    projectedUtilisation: fields.projectedUtilisation === undefined ? {} : fields.projectedUtilisation,
  };
}

/** A tensor of the Open Inference Protocol: little-endian, row-major. */
export interface Tensor {
  /** Input or output name. */
  name: string;
  /** FP32, FP64, FP16, INT64, INT32, INT8, UINT8, BOOL or BYTES. */
  datatype: string;
  /** Dimensions; candidates come first on the candidate side. */
  shape: number[];
  /** Raw bytes; for BYTES each element is a 4-byte little-endian length and its bytes. */
  contents: Buffer;
}

/** Any Tensor, its fields in the schema's order; what has a default may be left out. */
export function makeTensor(fields: Tensor): Tensor {
  return {
    name: fields.name,
    datatype: fields.datatype,
    shape: fields.shape,
    contents: fields.contents,
  };
}

/** A call to score N candidates for one user. */
export interface ScoreRequest {
  /** Names the request for people; at most 128 bytes. The record key should be the same text. */
  requestId: string;
  /** Model family, optionally family@version. */
  model: string;
  /** Budget from the append to the ingress topic to the result; the family's slaMs where absent. */
  deadlineMs: number | null;
  /** 0 is highest, 9 lowest. */
  priority: number;
  /** Predicted worth of the request, in any unit that is the same for all. */
  value: number | null;
  /** FP32 [N]: predicted worth of each candidate. */
  candidateValues: Buffer | null;
  /** What rollouts and experiments bucket by; requestId where absent. */
  bucketKey: string | null;
  /** Where the request comes from. */
  region: string | null;
  /** How many of the candidates must be scored; the rest are optional work. */
  baselineCandidates: number;
  /** INT64 [N] or BYTES [N]: echoed in the result, in the order of the scores. */
  candidateIds: Tensor | null;
  /** Inputs of the request side. */
  requestTensors: Tensor[];
  /** Inputs of the candidate side; the first dimension is N, best candidate first. */
  candidateTensors: Tensor[];
  /** Numbers that the producer knows; policies may test them, rankBy may read them. */
  hints: Record<string, number>;
  /** Text that policies may test; only allow-listed keys are kept. */
  context: Record<string, string>;
  /** Echoed in the result. */
  experiments: Record<string, string>;
  /** Optional treatments that this request must not get. */
  optOut: OptOut[];
  /** Policy or variant that must serve it; needs permission. */
  pin: string | null;
  /** When the features were read, ms since the epoch. */
  featuresAsOf: number | null;
  /** Partition of scored-results that must carry the result; murmur2 of requestId where absent. */
  resultPartition: number | null;
  /** True: the result carries the trace of the routing decision. */
  explain: boolean;
}

/** Any ScoreRequest, its fields in the schema's order; what has a default may be left out. */
export function makeScoreRequest(
  fields: WithDefaults<
    ScoreRequest,
    | 'deadlineMs'
    | 'priority'
    | 'value'
    | 'candidateValues'
    | 'bucketKey'
    | 'region'
    | 'candidateIds'
    | 'requestTensors'
    | 'candidateTensors'
    | 'hints'
    | 'context'
    | 'experiments'
    | 'optOut'
    | 'pin'
    | 'featuresAsOf'
    | 'resultPartition'
    | 'explain'
  >,
): ScoreRequest {
  return {
    requestId: fields.requestId,
    model: fields.model,
    deadlineMs: fields.deadlineMs === undefined ? null : fields.deadlineMs,
    priority: fields.priority === undefined ? 5 : fields.priority,
    value: fields.value === undefined ? null : fields.value,
    candidateValues: fields.candidateValues === undefined ? null : fields.candidateValues,
    bucketKey: fields.bucketKey === undefined ? null : fields.bucketKey,
    region: fields.region === undefined ? null : fields.region,
    baselineCandidates: fields.baselineCandidates,
    candidateIds: fields.candidateIds === undefined ? null : fields.candidateIds,
    requestTensors: fields.requestTensors === undefined ? [] : fields.requestTensors,
    candidateTensors: fields.candidateTensors === undefined ? [] : fields.candidateTensors,
    hints: fields.hints === undefined ? {} : fields.hints,
    context: fields.context === undefined ? {} : fields.context,
    experiments: fields.experiments === undefined ? {} : fields.experiments,
    optOut: fields.optOut === undefined ? [] : fields.optOut,
    pin: fields.pin === undefined ? null : fields.pin,
    featuresAsOf: fields.featuresAsOf === undefined ? null : fields.featuresAsOf,
    resultPartition: fields.resultPartition === undefined ? null : fields.resultPartition,
    explain: fields.explain === undefined ? false : fields.explain,
  };
}

export const OUTCOME_KINDS = [
  'UNKNOWN',
  'SCORED',
  'DEGRADED',
  'EXPIRED',
  'REJECTED',
  'DEAD_LETTERED',
] as const;
/** How a request ends; exactly one of these is visible per request. UNKNOWN is what an older reader sees of a newer kind. */
export type OutcomeKind = (typeof OUTCOME_KINDS)[number];

/** Why an outcome is not SCORED. */
export interface Reason {
  /** Closed list: see docs/errors. */
  code: string;
  /** What was wrong, the value, what is allowed. */
  message: string;
  /** Whether the same request can succeed later. */
  retryable: boolean;
  /** When to try again. */
  retryAfterMs: number | null;
}

/** Any Reason, its fields in the schema's order; what has a default may be left out. */
export function makeReason(fields: WithDefaults<Reason, 'retryAfterMs'>): Reason {
  return {
    code: fields.code,
    message: fields.message,
    retryable: fields.retryable,
    retryAfterMs: fields.retryAfterMs === undefined ? null : fields.retryAfterMs,
  };
}

/** Where it was scored. */
export interface TargetTaken {
  /** Accelerator class. */
  accelerator: string;
  /** Pool. */
  pool: string;
  /** Kernel. */
  kernel: string;
  /** Memory domain. */
  memory: string;
  /** Worker. */
  worker: string;
  /** True where service times are simulated. */
  simulated: boolean;
}

/** Any TargetTaken, its fields in the schema's order; what has a default may be left out. */
export function makeTargetTaken(fields: WithDefaults<TargetTaken, 'simulated'>): TargetTaken {
  return {
    accelerator: fields.accelerator,
    pool: fields.pool,
    kernel: fields.kernel,
    memory: fields.memory,
    worker: fields.worker,
    simulated: fields.simulated === undefined ? false : fields.simulated,
  };
}

/** Echo the token in outcomes. */
export interface Attribution {
  /** Signed, expiring. */
  token: string;
  /** Value segment. */
  segment: string;
  /** Probability of the treatment. */
  propensity: number;
  /** Chosen to explore. */
  explored: boolean;
}

/** Any Attribution, its fields in the schema's order; what has a default may be left out. */
export function makeAttribution(fields: Attribution): Attribution {
  return {
    token: fields.token,
    segment: fields.segment,
    propensity: fields.propensity,
    explored: fields.explored,
  };
}

/** Milliseconds per part of the way. */
export interface Timings {
  /** In topics. */
  inTopicMs: number;
  /** In the extractor. */
  extractMs: number;
  /** In the router. */
  routeMs: number;
  /** In the worker's queue. */
  queueMs: number;
  /** On the accelerator. */
  computeMs: number;
  /** From append to publication, as far as millrace can see it. */
  totalMs: number;
  /** Budget of the request. */
  budgetMs: number;
}

/** Any Timings, its fields in the schema's order; what has a default may be left out. */
export function makeTimings(
  fields: WithDefaults<
    Timings,
    'inTopicMs' | 'extractMs' | 'routeMs' | 'queueMs' | 'computeMs' | 'totalMs' | 'budgetMs'
  >,
): Timings {
  return {
    inTopicMs: fields.inTopicMs === undefined ? 0 : fields.inTopicMs,
    extractMs: fields.extractMs === undefined ? 0 : fields.extractMs,
    routeMs: fields.routeMs === undefined ? 0 : fields.routeMs,
    queueMs: fields.queueMs === undefined ? 0 : fields.queueMs,
    computeMs: fields.computeMs === undefined ? 0 : fields.computeMs,
    totalMs: fields.totalMs === undefined ? 0 : fields.totalMs,
    budgetMs: fields.budgetMs === undefined ? 0 : fields.budgetMs,
  };
}

/** How a request ended. The result with the lowest offset per identity is the answer. */
export interface ScoredResult {
  /** As in the request; for a dead letter its record key, else topic/partition/offset. */
  requestId: string;
  /** Where the request lies on ingress. */
  identity: Identity;
  /** Attempt that answered. */
  attempt: number;
  /** Terminal outcome. */
  outcome: OutcomeKind;
  /** Present unless SCORED. */
  reason: Reason | null;
  /** The budget ran out before the result was published. */
  late: boolean;
  /** Model family. */
  model: string;
  /** Version that scored. */
  modelVersion: string;
  /** Variant that scored. */
  variant: Variant;
  /** Every head by name, FP32 [n]. */
  outputs: Tensor[];
  /** FP32 [n]: what rankBy makes of the heads. */
  scores: Buffer;
  /** The ids of the scored candidates, in the same order. */
  candidateIds: Tensor | null;
  /** UINT8 [n]: stage of a cascade that scored each candidate. */
  scoredStage: Buffer | null;
  /** n. */
  candidatesScored: number;
  /** As in the request. */
  baselineCandidates: number;
  /** Extras granted by the budget. */
  candidatesGranted: number;
  /** Granted extras that were not scored. */
  candidatesShed: number;
  /** Absent where the request ended before routing. */
  policy: PolicyDecision | null;
  /** Absent where no worker took it. */
  target: TargetTaken | null;
  /** Why the target is not the leaf's first choice. */
  fallback: string | null;
  /** For outcomes. */
  attribution: Attribution | null;
  /** As in the request. */
  experiments: Record<string, string>;
  /** Version of the features. */
  featureVersion: string;
  /** Version of the item tables. */
  itemTableVersion: string;
  /** Candidate ids that no item table knew. */
  unknownIds: number;
  /** Views of the feature source that rows were read from, separated by commas. */
  featureViews: string;
  /** Rows that default rows stood in for: the feature source had none, or did not answer in time. */
  defaultRows: number;
  /** Where the time went. */
  timings: Timings;
  /** JSON trace of the routing decision, where asked for. */
  trace: string | null;
}

/** Any ScoredResult, its fields in the schema's order; what has a default may be left out. */
export function makeScoredResult(
  fields: WithDefaults<
    ScoredResult,
    | 'attempt'
    | 'reason'
    | 'late'
    | 'model'
    | 'modelVersion'
    | 'variant'
    | 'outputs'
    | 'scores'
    | 'candidateIds'
    | 'scoredStage'
    | 'candidatesScored'
    | 'baselineCandidates'
    | 'candidatesGranted'
    | 'candidatesShed'
    | 'policy'
    | 'target'
    | 'fallback'
    | 'attribution'
    | 'experiments'
    | 'featureVersion'
    | 'itemTableVersion'
    | 'unknownIds'
    | 'featureViews'
    | 'defaultRows'
    | 'trace'
  >,
): ScoredResult {
  return {
    requestId: fields.requestId,
    identity: fields.identity,
    attempt: fields.attempt === undefined ? 1 : fields.attempt,
    outcome: fields.outcome,
    reason: fields.reason === undefined ? null : fields.reason,
    late: fields.late === undefined ? false : fields.late,
    model: fields.model === undefined ? '' : fields.model,
    modelVersion: fields.modelVersion === undefined ? '' : fields.modelVersion,
    variant: fields.variant === undefined ? 'BASELINE' : fields.variant,
    outputs: fields.outputs === undefined ? [] : fields.outputs,
    scores: fields.scores === undefined ? EMPTY : fields.scores,
    candidateIds: fields.candidateIds === undefined ? null : fields.candidateIds,
    scoredStage: fields.scoredStage === undefined ? null : fields.scoredStage,
    candidatesScored: fields.candidatesScored === undefined ? 0 : fields.candidatesScored,
    baselineCandidates: fields.baselineCandidates === undefined ? 0 : fields.baselineCandidates,
    candidatesGranted: fields.candidatesGranted === undefined ? 0 : fields.candidatesGranted,
    candidatesShed: fields.candidatesShed === undefined ? 0 : fields.candidatesShed,
    policy: fields.policy === undefined ? null : fields.policy,
    target: fields.target === undefined ? null : fields.target,
    fallback: fields.fallback === undefined ? null : fields.fallback,
    attribution: fields.attribution === undefined ? null : fields.attribution,
    experiments: fields.experiments === undefined ? {} : fields.experiments,
    featureVersion: fields.featureVersion === undefined ? '' : fields.featureVersion,
    itemTableVersion: fields.itemTableVersion === undefined ? '' : fields.itemTableVersion,
    unknownIds: fields.unknownIds === undefined ? 0 : fields.unknownIds,
    featureViews: fields.featureViews === undefined ? '' : fields.featureViews,
    defaultRows: fields.defaultRows === undefined ? 0 : fields.defaultRows,
    timings: fields.timings,
    trace: fields.trace === undefined ? null : fields.trace,
  };
}

/** One score of each request, of a baseline candidate drawn at random, for the requests of one eighth of all keys. */
export interface ScoreSample {
  /** Which eighth: 0 … 7, by a hash of the key. */
  group: number;
  /** Requests. */
  count: number;
  /** Of their scores. */
  sum: number;
  /** Of their scores. */
  sumOfSquares: number;
  /** Of their scores in log-linear bins; docs/contracts.md has the form. */
  histogram: Buffer;
}

/** Any ScoreSample, its fields in the schema's order; what has a default may be left out. */
export function makeScoreSample(fields: ScoreSample): ScoreSample {
  return {
    group: fields.group,
    count: fields.count,
    sum: fields.sum,
    sumOfSquares: fields.sumOfSquares,
    histogram: fields.histogram,
  };
}

/** Scores of one head. */
export interface HeadWindow {
  /** Head. */
  name: string;
  /** Scores. */
  count: number;
  /** Mean. */
  mean: number;
  /** Counts in 20 equal bins of [0, 1]. */
  histogram: number[];
  /** The scores that rollouts are compared by. */
  samples: ScoreSample[];
}

/** Any HeadWindow, its fields in the schema's order; what has a default may be left out. */
export function makeHeadWindow(fields: WithDefaults<HeadWindow, 'samples'>): HeadWindow {
  return {
    name: fields.name,
    count: fields.count,
    mean: fields.mean,
    histogram: fields.histogram,
    samples: fields.samples === undefined ? [] : fields.samples,
  };
}

/** Latency of one worker, pool, kernel, model and arm in one window. */
export interface WorkerWindow {
  /** Worker. */
  worker: string;
  /** Changes with every start. */
  incarnation: string;
  /** Rises by one per window: late, lost and repeated windows are known by it. */
  sequence: number;
  /** Start, worker's wall clock, ms since the epoch. */
  windowStartMs: number;
  /** Length. */
  windowMs: number;
  /** Pool. */
  pool: string;
  /** Kernel. */
  kernel: string;
  /** Memory domain. */
  memory: string;
  /** Family. */
  model: string;
  /** Version. */
  modelVersion: string;
  /** Variant. */
  variant: Variant;
  /** Arm. */
  arm: Arm;
  /** Whether the statistics of a rollout count these requests. */
  analysed: boolean;
  /** Scores and compute time of a model version on its way to live, on a sample of requests that another version answered: of a canary in shadow. Counts no outcomes, and is not analysed. */
  shadow: boolean;
  /** Of a shadow: requests of the sample that were not scored, for the worker had other work. */
  shadowDropped: number;
  /** Name of the policy that decided. */
  policy: string;
  /** Epoch of the pointer under which it decided. */
  policyEpoch: number;
  /** DDSketch (protobuf) of in-topic time, ms. */
  inTopicSketch: Buffer;
  /** … of queue time. */
  queueSketch: Buffer;
  /** … of compute time. */
  computeSketch: Buffer;
  /** … from append to publication. */
  endToEndSketch: Buffer;
  /** Counts by outcome. */
  outcomes: Record<string, number>;
  /** Of those that were scored, published after their budget ran out. */
  late: number;
  /** Shed optional work by value bin. */
  shedByValue: Record<string, number>;
  /** Score distribution per head. */
  heads: HeadWindow[];
  /** Bytes packed for the accelerator and read back. */
  bytesMoved: number;
}

/** Any WorkerWindow, its fields in the schema's order; what has a default may be left out. */
export function makeWorkerWindow(
  fields: WithDefaults<
    WorkerWindow,
    | 'sequence'
    | 'variant'
    | 'arm'
    | 'analysed'
    | 'shadow'
    | 'shadowDropped'
    | 'policy'
    | 'policyEpoch'
    | 'inTopicSketch'
    | 'queueSketch'
    | 'computeSketch'
    | 'endToEndSketch'
    | 'outcomes'
    | 'late'
    | 'shedByValue'
    | 'heads'
    | 'bytesMoved'
  >,
): WorkerWindow {
  return {
    worker: fields.worker,
    incarnation: fields.incarnation,
    sequence: fields.sequence === undefined ? 0 : fields.sequence,
    windowStartMs: fields.windowStartMs,
    windowMs: fields.windowMs,
    pool: fields.pool,
    kernel: fields.kernel,
    memory: fields.memory,
    model: fields.model,
    modelVersion: fields.modelVersion,
    variant: fields.variant === undefined ? 'BASELINE' : fields.variant,
    arm: fields.arm === undefined ? 'STABLE' : fields.arm,
    analysed: fields.analysed === undefined ? true : fields.analysed,
    shadow: fields.shadow === undefined ? false : fields.shadow,
    shadowDropped: fields.shadowDropped === undefined ? 0 : fields.shadowDropped,
    policy: fields.policy === undefined ? '' : fields.policy,
    policyEpoch: fields.policyEpoch === undefined ? 0 : fields.policyEpoch,
    inTopicSketch: fields.inTopicSketch === undefined ? EMPTY : fields.inTopicSketch,
    queueSketch: fields.queueSketch === undefined ? EMPTY : fields.queueSketch,
    computeSketch: fields.computeSketch === undefined ? EMPTY : fields.computeSketch,
    endToEndSketch: fields.endToEndSketch === undefined ? EMPTY : fields.endToEndSketch,
    outcomes: fields.outcomes === undefined ? {} : fields.outcomes,
    late: fields.late === undefined ? 0 : fields.late,
    shedByValue: fields.shedByValue === undefined ? {} : fields.shedByValue,
    heads: fields.heads === undefined ? [] : fields.heads,
    bytesMoved: fields.bytesMoved === undefined ? 0 : fields.bytesMoved,
  };
}

/** The TypeScript type of each record that travels on a topic. */
export interface Records {
  ControlCommand: ControlCommand;
  ControlEvent: ControlEvent;
  DispatchAck: DispatchAck;
  Dispatch: Dispatch;
  Outcome: Outcome;
  PoolStatus: PoolStatus;
  RoutableRequest: RoutableRequest;
  RouterWindow: RouterWindow;
  ScoreRequest: ScoreRequest;
  ScoredResult: ScoredResult;
  WorkerWindow: WorkerWindow;
}

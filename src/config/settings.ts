import * as v from 'valibot';
import { closedObject } from '../core/json-values.ts';
import { DEFAULT_TUNING } from '../core/tuning/tuning-terms.ts';
import { guardrailSettings } from './guardrail-settings.ts';

/**
 * Every setting of every process, with its default and its bounds. The environment variable of each follows from its path:
 * `kafka.saslUsername` is MILLRACE_KAFKA_SASL_USERNAME. A title says in words what a pattern allows.
 */

const durationMs = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(3_600_000));
const count = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000_000));

const kafka = closedObject({
  client: v.pipe(
    v.optional(v.picklist(['kafkajs', 'platformatic']), 'kafkajs'),
    v.description('Kafka client library.'),
  ),
  brokers: v.pipe(
    v.optional(v.array(v.pipe(v.string(), v.regex(/^[^\s:]+:\d{1,5}$/), v.title('host:port'))), []),
    v.description('Brokers to start from, host:port.'),
  ),
  tls: v.pipe(
    v.optional(v.boolean(), false),
    v.description("TLS to the brokers, with the system's certificate authorities."),
  ),
  saslMechanism: v.pipe(
    v.optional(v.picklist(['none', 'plain', 'scram-sha-256', 'scram-sha-512']), 'none'),
    v.description('SASL mechanism.'),
  ),
  saslUsername: v.pipe(v.optional(v.string(), ''), v.description('SASL user.')),
  saslPassword: v.pipe(v.optional(v.string(), ''), v.description('SASL password.')),
  replication: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(9)), 1),
    v.description('Replication factor of topics that `topics apply` creates; 3 on a real cluster.'),
  ),
  partitions: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(10_000)), 12),
    v.description('Partitions of ingress, features, acks and results; 48 on a real cluster.'),
  ),
  sessionTimeoutMs: v.pipe(
    v.optional(durationMs, 6_000),
    v.description('How soon the partitions of a dead process go to another.'),
  ),
  drainTimeoutMs: v.pipe(
    v.optional(durationMs, 5_000),
    v.description('How long a partition that is taken away may finish its work.'),
  ),
});

const registry = closedObject({
  username: v.pipe(
    v.optional(v.pipe(v.string(), v.regex(/^[^:]*$/), v.title('any text without ":"')), ''),
    v.description('User, or API key, of the schema registry (HTTP Basic); none where empty.'),
  ),
  password: v.pipe(v.optional(v.string(), ''), v.description('Its password, or API secret.')),
});

const http = closedObject({
  host: v.pipe(v.optional(v.string(), '127.0.0.1'), v.description('Address of health and metrics.')),
  port: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(65_535)), 0),
    v.description('Port of health and metrics; 0 takes a free one.'),
  ),
});

const limits = closedObject({
  requestBytesMax: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_048_576)), 1_048_576),
    v.description('Largest request, bytes; the ingress topics take no more than the default.'),
  ),
  contextKeys: v.pipe(
    v.optional(v.array(v.string()), ['surface', 'device', 'country', 'tier']),
    v.description('Context keys that are kept for policies.'),
  ),
});

const router = closedObject({
  name: v.pipe(v.optional(v.string(), ''), v.description('Name of the router; made up where empty.')),
  creditsMax: v.pipe(v.optional(count, 512), v.description('Most dispatches outstanding per slot.')),
  statusStaleMs: v.pipe(
    v.optional(durationMs, 1_000),
    v.description('A worker without a heartbeat for so long gets no new work.'),
  ),
  giveUpGraceMs: v.pipe(
    v.optional(durationMs, 1_000),
    v.description('Dispatches are given up so long after their budget ran out.'),
  ),
  stateFolder: v.pipe(
    v.optional(v.string(), ''),
    v.description(
      'Folder for the last-known-good policy, with which the router starts while Redis is away; nothing is kept where empty.',
    ),
  ),
});

const overload = closedObject({
  slaMs: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(3_600_000)), 0),
    v.description(
      'How long a request may take. Workers that are asked for more than they can do in so long refuse and drop what is worth least; 0: they queue all, and order it by deadline alone.',
    ),
  ),
  order: v.pipe(
    v.optional(v.picklist(['strict', 'one-price']), 'strict'),
    v.description(
      'What an overloaded worker computes first. strict: by priority, then by value for the cost, enhanced requests last; one-price: by value for the cost alone.',
    ),
  ),
});

const worker = closedObject({
  name: v.pipe(v.optional(v.string(), ''), v.description('Name of the worker; made up where empty.')),
  build: v.pipe(
    v.optional(v.string(), ''),
    v.description(
      "What it runs, such as the digest of an image: a rollout's stage begins anew where that changes. The version of the package where empty.",
    ),
  ),
  pool: v.pipe(
    v.optional(v.string(), 'cpu'),
    v.description(
      'Pool that it belongs to; the fleet says which accelerator class and capacity class that is.',
    ),
  ),
  slots: v.pipe(
    v.optional(v.array(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(9_999))), [0]),
    v.description("Partitions of the pool's dispatch topic that it owns."),
  ),
  shareSlots: v.pipe(
    v.optional(v.boolean(), false),
    v.description(
      "Owns an even share of the pool's slots, by what its other workers hold, whatever worker.slots says. All workers of a pool, or none.",
    ),
  ),
  slotsMax: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(64)), 4),
    v.description('Most slots of a worker that shares them.'),
  ),
  backend: v.pipe(
    v.optional(
      v.picklist(['onnx-cpu', 'sparse-cpu', 'onnx-webgpu', 'open-inference', 'simulated', 'immediate']),
      'onnx-cpu',
    ),
    v.description(
      'How it computes. sparse-cpu: as onnx-cpu, with a kernel that skips zeros of candidates; onnx-webgpu: on a GPU, by Vulkan; open-inference: on a server of that protocol; simulated: the real model behind timed service; immediate: constant scores at once, for pipeline benchmarks.',
    ),
  ),
  simulatedSlowdown: v.pipe(
    v.optional(v.pipe(v.number(), v.minValue(0.1), v.maxValue(1_000)), 1),
    v.description(
      'Factor on the service times of the simulated backend: a device that is slower than its profile.',
    ),
  ),
  simulatedSlowMemory: v.pipe(
    v.optional(v.string(), ''),
    v.description(
      'Only this memory domain of the simulated backend is slowed down; all of them where empty.',
    ),
  ),
  batchRequestsMax: v.pipe(v.optional(count, 64), v.description('Most requests in a batch.')),
  batchCandidatesMax: v.pipe(v.optional(count, 4_096), v.description('Most candidates in a batch.')),
  batchMsMax: v.pipe(
    v.optional(durationMs, 10),
    v.description(
      'Most predicted service time of a batch of several: what arrives meanwhile waits for so long.',
    ),
  ),
  batchesInFlightMax: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(8)), 2),
    v.description('Batches on the accelerator at once; 2 overlaps packing with computing.'),
  ),
  modelCache: v.pipe(
    v.optional(v.string(), ''),
    v.description(
      'Folder for the files of published model versions; workers of a machine may share it. One of this process alone, gone with it, where empty.',
    ),
  ),
  modelBytesMax: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(4 * 1024 ** 3)), 1024 ** 3),
    v.description('Largest published version that is fetched: all its files together.'),
  ),
  modelFetchTimeoutMs: v.pipe(
    v.optional(durationMs, 300_000),
    v.description('How long fetching a published version may take; then it is tried again.'),
  ),
  modelVersionsMax: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(64)), 8),
    v.description('Most published versions loaded at once, beside those of the model folder.'),
  ),
  modelUnloadAfterMs: v.pipe(
    v.optional(durationMs, 600_000),
    v.description('A published version that no policy in use names any more is unloaded so long after.'),
  ),
  itemTablesLookMs: v.pipe(
    v.optional(durationMs, 5_000),
    v.description('How often a worker looks whether other item tables lie in the model folder.'),
  ),
  intraOpThreads: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(64)), 1),
    v.description('Threads of one model run.'),
  ),
  heartbeatMs: v.pipe(v.optional(durationMs, 200), v.description('Period of pool status.')),
  ackCoalesceMs: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(100)), 2),
    v.description('Acknowledgements to a router are gathered at most so long.'),
  ),
});

const features = closedObject({
  url: v.pipe(
    v.optional(v.string(), ''),
    v.description(
      "Redis of Feast's online store, which workers read rows from that models name a source for; none where empty.",
    ),
  ),
  project: v.pipe(
    v.optional(v.string(), ''),
    v.description("Feast's name of the project: it is part of every key there."),
  ),
  waitMs: v.pipe(
    v.optional(durationMs, 20),
    v.description(
      'How long a request may wait for its rows, within its budget; then default rows stand in, or it is refused.',
    ),
  ),
});

const openInference = closedObject({
  protocol: v.pipe(
    v.optional(v.picklist(['http', 'grpc']), 'http'),
    v.description('What the server is spoken to over; its port for gRPC is another one (of Triton: 8001).'),
  ),
  url: v.pipe(
    v.optional(
      v.pipe(
        v.string(),
        v.regex(/^https?:\/\/[^\s/?#@]+(\/[^\s?#]*[^\s?#/])?$/),
        v.title('http(s)://host:port, over HTTP with a path where the server has one'),
      ),
      'http://127.0.0.1:8000',
    ),
    v.description('Server on which workers with that backend compute.'),
  ),
  modelName: v.pipe(
    v.optional(v.pipe(v.string(), v.minLength(1)), '{family}'),
    v.description("The server's name of a model; {family} and {version} stand for ours."),
  ),
  modelVersion: v.pipe(
    v.optional(v.string(), '{version}'),
    v.description("The server's name of a version; where empty, requests name none and the server chooses."),
  ),
  kernels: v.pipe(
    v.optional(v.pipe(v.array(v.pipe(v.string(), v.regex(/^[a-z][a-z0-9-]*$/))), v.minLength(1)), ['dense']),
    v.description('Kernels that the device behind the server runs.'),
  ),
  memories: v.pipe(
    v.optional(v.pipe(v.array(v.pipe(v.string(), v.regex(/^[a-z][a-z0-9-]*$/))), v.minLength(1)), ['host']),
    v.description('Memory domains of that device.'),
  ),
  timeoutMs: v.pipe(
    v.optional(durationMs, 10_000),
    v.description(
      'How long a question about a model may take, and each golden case, when a version is loaded.',
    ),
  ),
});

/** Paths of gRPC are those of its methods. */
const hasPathOfProtocol = ({ protocol, url }: v.InferOutput<typeof openInference>): boolean =>
  protocol === 'http' || !/\/\/.*\//.test(url);

const s3 = closedObject({
  origins: v.pipe(
    v.optional(
      v.array(v.pipe(v.string(), v.regex(/^https?:\/\/[^\s/@?#]+$/), v.title('http(s)://host or host:port'))),
      [],
    ),
    v.description(
      'Origins of S3-compatible stores from which published model versions are read by requests signed with these credentials (AWS Signature Version 4); any other is read unsigned.',
    ),
  ),
  region: v.pipe(v.optional(v.string(), 'us-east-1'), v.description('Region of those stores.')),
  accessKeyId: v.pipe(v.optional(v.string(), ''), v.description('Name of the access key.')),
  secretAccessKey: v.pipe(v.optional(v.string(), ''), v.description('Secret access key.')),
  sessionToken: v.pipe(v.optional(v.string(), ''), v.description('Session token of temporary credentials.')),
});

const controller = closedObject({
  acceptUnsigned: v.pipe(
    v.optional(v.boolean(), false),
    v.description(
      'Accept control commands, and in routers policies and in workers model versions, without a signature: whoever may write to the control topic or to Redis then decides. The embedded run does so whatever stands here: both are in its own process.',
    ),
  ),
  keys: v.pipe(
    v.optional(v.string(), ''),
    v.description(
      'Key file: public keys that may sign control commands; routers check policies by it too, workers model versions. Where it is set, a signature that does not hold is always refused.',
    ),
  ),
  signingKey: v.pipe(
    v.optional(v.string(), ''),
    v.description(
      'Private key of the controller (PEM): it signs the policies that the controller makes by tuning. Without it nothing is tuned where signatures are demanded.',
    ),
  ),
  signingKeyId: v.pipe(
    v.optional(v.string(), 'controller'),
    v.description("The key file's name for it; its role there is controller."),
  ),
  reconcileMs: v.pipe(
    v.optional(durationMs, 2_000),
    v.description('How often the store is compared with the log.'),
  ),
  rollout: v.pipe(
    v.optional(v.picklist(['auto', 'staged', 'immediate']), 'auto'),
    v.description(
      'What becomes of a published version: staged waits for START and goes live by stages, immediate is live at once (the first version of a policy always is). auto: staged, but immediate in the embedded run.',
    ),
  ),
  autoStart: v.pipe(
    v.optional(v.boolean(), false),
    v.description('Start the rollout of a published version by itself, where no other is on its way.'),
  ),
  autoPromote: v.pipe(
    v.optional(v.boolean(), false),
    v.description(
      'A stage that passed goes on by itself; otherwise it waits for PROMOTE. START can say otherwise. In the embedded run it goes on by itself whatever stands here.',
    ),
  ),
  autoRollback: v.pipe(
    v.optional(v.boolean(), true),
    v.description('Proven harm is rolled back by itself; otherwise it is a hold. START can say otherwise.'),
  ),
  lookMs: v.pipe(v.optional(durationMs, 10_000), v.description('How often a running rollout is looked at.')),
  leaseMs: v.pipe(
    v.optional(durationMs, 60_000),
    v.description('Routers leave a canary when they heard nothing of its controller for so long.'),
  ),
  prometheusUrl: v.pipe(
    v.optional(
      v.pipe(
        v.string(),
        v.regex(/^(https?:\/\/[^\s@]+)?$/),
        v.title('an http(s) URL without credentials, or nothing'),
      ),
      '',
    ),
    v.description(
      'Prometheus that the queries in guardrails of policies are asked of; where it is empty, a policy that has any is refused.',
    ),
  ),
  prometheusToken: v.pipe(
    v.optional(
      v.pipe(
        v.string(),
        v.trim(),
        // Anything else cannot be sent, and an error would say what.
        v.regex(/^[\x21-\x7e]*$/),
        v.title('visible ASCII characters without spaces, or nothing'),
      ),
      '',
    ),
    v.description('Bearer token for it; none where empty.'),
  ),
  prometheusTimeoutMs: v.pipe(
    v.optional(durationMs, 2_000),
    v.description('How long it may take to answer a query; a query without an answer is a hold.'),
  ),
  tuning: v.pipe(
    v.optional(v.boolean(), false),
    v.description(
      'Move the tunable constants of live policies, off devices and memory domains that get slower.',
    ),
  ),
  tuningPeriodMs: v.pipe(
    v.optional(durationMs, DEFAULT_TUNING.periodMs),
    v.description('How often they are looked at; there is one step per period at most.'),
  ),
  tuningRequestsMin: v.pipe(
    v.optional(count, DEFAULT_TUNING.requestsMin),
    v.description(
      'Fewest requests of a memory domain in one period that show anything; the default is for production.',
    ),
  ),
  shadowRequestsMin: v.pipe(
    v.optional(count, 10_000),
    v.description(
      'Fewest requests that both policies decide before a shadow ends; the default is for production.',
    ),
  ),
});

export const SettingsSchema = closedObject({
  installation: v.pipe(
    v.optional(v.string(), ''),
    v.description(
      'Name of the installation in the signatures of commands that are signed with these settings; needed where the key has one in the key file.',
    ),
  ),
  prefix: v.pipe(
    v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[a-z0-9][a-z0-9._-]{0,63}$/),
        v.title('small letters, digits, ".", "_", "-"; at most 64, a letter or digit first'),
      ),
      'millrace',
    ),
    v.description('First part of all topic and group names.'),
  ),
  topology: v.pipe(
    v.optional(v.picklist(['split', 'fused']), 'split'),
    v.description(
      'split: extractor and router are processes of their own; fused: the router process does both.',
    ),
  ),
  logLevel: v.pipe(
    v.optional(v.picklist(['debug', 'info', 'warn', 'error', 'silent']), 'info'),
    v.description('Lowest level that is logged.'),
  ),
  registryUrl: v.pipe(v.optional(v.string(), ''), v.description('Confluent-compatible schema registry.')),
  redisUrl: v.pipe(v.optional(v.string(), ''), v.description('Redis of the control store.')),
  models: v.pipe(
    v.optional(v.string(), ''),
    v.description('Model repository; the packaged one where empty.'),
  ),
  policy: v.pipe(
    v.optional(v.string(), ''),
    v.description('Policy that is in force until the store names another; the packaged starter where empty.'),
  ),
  fleet: v.pipe(
    v.optional(v.string(), ''),
    v.description('Fleet file: accelerator classes and their pools; the packaged one where empty.'),
  ),
  slotsPerPool: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(10_000)), 4),
    v.description('Partitions of each dispatch topic.'),
  ),
  tenants: v.pipe(
    v.optional(
      v.array(
        v.pipe(v.string(), v.regex(/^[a-z0-9-]{1,32}$/), v.title('small letters, digits, "-"; at most 32')),
      ),
      [],
    ),
    v.description('Tenants with an ingress topic of their own.'),
  ),
  unacknowledgedMax: v.pipe(
    v.optional(count, 1_000),
    v.description('Records of one partition in work at once.'),
  ),
  deadLetterPayload: v.pipe(
    v.optional(v.picklist(['full', 'hash']), 'full'),
    v.description('What a dead letter carries: the original bytes, or their hash.'),
  ),
  tries: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100)), 3),
    v.description('Tries before a record is poison.'),
  ),
  windowMs: v.pipe(v.optional(durationMs, 1_000), v.description('Length of a window of metrics.')),
  kafka: v.optional(kafka, {}),
  registry: v.optional(registry, {}),
  http: v.optional(http, {}),
  limits: v.optional(limits, {}),
  router: v.optional(router, {}),
  worker: v.optional(worker, {}),
  overload: v.optional(overload, {}),
  features: v.optional(features, {}),
  openInference: v.optional(
    v.pipe(
      openInference,
      v.forward(
        v.check(
          hasPathOfProtocol,
          'http(s)://host:port, without a path, where openInference.protocol is grpc',
        ),
        ['url'],
      ),
    ),
    {},
  ),
  s3: v.optional(s3, {}),
  controller: v.optional(controller, {}),
  guardrails: v.optional(guardrailSettings, {}),
});

export type Settings = v.InferOutput<typeof SettingsSchema>;

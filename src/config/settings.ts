import { z } from 'zod';
import { DEFAULT_TUNING } from '../core/tuning/tuning-terms.ts';
import { guardrailSettings } from './guardrail-settings.ts';

/**
 * Every setting of every process, with its default and its bounds. The environment variable of each follows from its path:
 * `kafka.saslUsername` is MILLRACE_KAFKA_SASL_USERNAME. A title says in words what a pattern allows.
 */

const durationMs = z.number().int().min(1).max(3_600_000);
const count = z.number().int().min(1).max(1_000_000);

const kafka = z.strictObject({
  client: z.enum(['kafkajs', 'platformatic']).default('kafkajs').describe('Kafka client library.'),
  brokers: z
    .array(
      z
        .string()
        .regex(/^[^\s:]+:\d{1,5}$/)
        .meta({ title: 'host:port' }),
    )
    .default([])
    .describe('Brokers to start from, host:port.'),
  tls: z.boolean().default(false).describe("TLS to the brokers, with the system's certificate authorities."),
  saslMechanism: z
    .enum(['none', 'plain', 'scram-sha-256', 'scram-sha-512'])
    .default('none')
    .describe('SASL mechanism.'),
  saslUsername: z.string().default('').describe('SASL user.'),
  saslPassword: z.string().default('').describe('SASL password.'),
  replication: z
    .number()
    .int()
    .min(1)
    .max(9)
    .default(1)
    .describe('Replication factor of topics that `topics apply` creates; 3 on a real cluster.'),
  partitions: z
    .number()
    .int()
    .min(1)
    .max(10_000)
    .default(12)
    .describe('Partitions of ingress, features, acks and results; 48 on a real cluster.'),
  sessionTimeoutMs: durationMs
    .default(6_000)
    .describe('How soon the partitions of a dead process go to another.'),
  drainTimeoutMs: durationMs
    .default(5_000)
    .describe('How long a partition that is taken away may finish its work.'),
});

const registry = z.strictObject({
  username: z
    .string()
    .regex(/^[^:]*$/)
    .meta({ title: 'any text without ":"' })
    .default('')
    .describe('User, or API key, of the schema registry (HTTP Basic); none where empty.'),
  password: z.string().default('').describe('Its password, or API secret.'),
});

const http = z.strictObject({
  host: z.string().default('127.0.0.1').describe('Address of health and metrics.'),
  port: z
    .number()
    .int()
    .min(0)
    .max(65_535)
    .default(0)
    .describe('Port of health and metrics; 0 takes a free one.'),
});

const limits = z.strictObject({
  requestBytesMax: z
    .number()
    .int()
    .min(1)
    .max(1_048_576)
    .default(1_048_576)
    .describe('Largest request, bytes; the ingress topics take no more than the default.'),
  contextKeys: z
    .array(z.string())
    .default(['surface', 'device', 'country', 'tier'])
    .describe('Context keys that are kept for policies.'),
});

const router = z.strictObject({
  name: z.string().default('').describe('Name of the router; made up where empty.'),
  creditsMax: count.default(512).describe('Most dispatches outstanding per slot.'),
  statusStaleMs: durationMs
    .default(1_000)
    .describe('A worker without a heartbeat for so long gets no new work.'),
  giveUpGraceMs: durationMs
    .default(1_000)
    .describe('Dispatches are given up so long after their budget ran out.'),
  stateFolder: z
    .string()
    .default('')
    .describe(
      'Folder for the last-known-good policy, with which the router starts while Redis is away; nothing is kept where empty.',
    ),
});

const worker = z.strictObject({
  name: z.string().default('').describe('Name of the worker; made up where empty.'),
  pool: z
    .string()
    .default('cpu')
    .describe('Pool that it belongs to; the fleet says which accelerator class and capacity class that is.'),
  slots: z
    .array(z.number().int().min(0).max(9_999))
    .default([0])
    .describe("Partitions of the pool's dispatch topic that it owns."),
  shareSlots: z
    .boolean()
    .default(false)
    .describe(
      "Owns an even share of the pool's slots, by what its other workers hold, whatever worker.slots says. All workers of a pool, or none.",
    ),
  slotsMax: z.number().int().min(1).max(64).default(4).describe('Most slots of a worker that shares them.'),
  backend: z
    .enum(['onnx-cpu', 'sparse-cpu', 'onnx-webgpu', 'open-inference', 'simulated', 'immediate'])
    .default('onnx-cpu')
    .describe(
      'How it computes. sparse-cpu: as onnx-cpu, with a kernel that skips zeros of candidates; onnx-webgpu: on a GPU, by Vulkan; open-inference: on a server of that protocol; simulated: the real model behind timed service; immediate: constant scores at once, for pipeline benchmarks.',
    ),
  simulatedSlowdown: z
    .number()
    .min(0.1)
    .max(1_000)
    .default(1)
    .describe(
      'Factor on the service times of the simulated backend: a device that is slower than its profile.',
    ),
  simulatedSlowMemory: z
    .string()
    .default('')
    .describe('Only this memory domain of the simulated backend is slowed down; all of them where empty.'),
  batchRequestsMax: count.default(64).describe('Most requests in a batch.'),
  batchCandidatesMax: count.default(4_096).describe('Most candidates in a batch.'),
  batchMsMax: durationMs
    .default(10)
    .describe('Most predicted service time of a batch of several: what arrives meanwhile waits for so long.'),
  batchesInFlightMax: z
    .number()
    .int()
    .min(1)
    .max(8)
    .default(2)
    .describe('Batches on the accelerator at once; 2 overlaps packing with computing.'),
  modelCache: z
    .string()
    .default('')
    .describe(
      'Folder for the files of published model versions; workers of a machine may share it. One of this process alone, gone with it, where empty.',
    ),
  modelBytesMax: z
    .number()
    .int()
    .min(1)
    .max(4 * 1024 ** 3)
    .default(1024 ** 3)
    .describe('Largest published version that is fetched: all its files together.'),
  modelFetchTimeoutMs: durationMs
    .default(300_000)
    .describe('How long fetching a published version may take; then it is tried again.'),
  modelVersionsMax: z
    .number()
    .int()
    .min(1)
    .max(64)
    .default(8)
    .describe('Most published versions loaded at once, beside those of the model folder.'),
  modelUnloadAfterMs: durationMs
    .default(600_000)
    .describe('A published version that no policy in use names any more is unloaded so long after.'),
  itemTablesLookMs: durationMs
    .default(5_000)
    .describe('How often a worker looks whether other item tables lie in the model folder.'),
  intraOpThreads: z.number().int().min(1).max(64).default(1).describe('Threads of one model run.'),
  heartbeatMs: durationMs.default(200).describe('Period of pool status.'),
  ackCoalesceMs: z
    .number()
    .int()
    .min(0)
    .max(100)
    .default(2)
    .describe('Acknowledgements to a router are gathered at most so long.'),
});

const features = z.strictObject({
  url: z
    .string()
    .default('')
    .describe(
      "Redis of Feast's online store, which workers read rows from that models name a source for; none where empty.",
    ),
  project: z.string().default('').describe("Feast's name of the project: it is part of every key there."),
  waitMs: durationMs
    .default(20)
    .describe(
      'How long a request may wait for its rows, within its budget; then default rows stand in, or it is refused.',
    ),
});

const openInference = z.strictObject({
  protocol: z
    .enum(['http', 'grpc'])
    .default('http')
    .describe('What the server is spoken to over; its port for gRPC is another one (of Triton: 8001).'),
  url: z
    .string()
    .regex(/^https?:\/\/[^\s/?#@]+(\/[^\s?#]*[^\s?#/])?$/)
    .meta({ title: 'http(s)://host:port, over HTTP with a path where the server has one' })
    .default('http://127.0.0.1:8000')
    .describe('Server on which workers with that backend compute.'),
  modelName: z
    .string()
    .min(1)
    .default('{family}')
    .describe("The server's name of a model; {family} and {version} stand for ours."),
  modelVersion: z
    .string()
    .default('{version}')
    .describe("The server's name of a version; where empty, requests name none and the server chooses."),
  kernels: z
    .array(z.string().regex(/^[a-z][a-z0-9-]*$/))
    .min(1)
    .default(['dense'])
    .describe('Kernels that the device behind the server runs.'),
  memories: z
    .array(z.string().regex(/^[a-z][a-z0-9-]*$/))
    .min(1)
    .default(['host'])
    .describe('Memory domains of that device.'),
  timeoutMs: durationMs
    .default(10_000)
    .describe('How long a question about a model may take, and each golden case, when a version is loaded.'),
});

/** Paths of gRPC are those of its methods. */
const hasPathOfProtocol = ({ protocol, url }: z.output<typeof openInference>): boolean =>
  protocol === 'http' || !/\/\/.*\//.test(url);

const s3 = z.strictObject({
  origins: z
    .array(
      z
        .string()
        .regex(/^https?:\/\/[^\s/@?#]+$/)
        .meta({ title: 'http(s)://host or host:port' }),
    )
    .default([])
    .describe(
      'Origins of S3-compatible stores from which published model versions are read by requests signed with these credentials (AWS Signature Version 4); any other is read unsigned.',
    ),
  region: z.string().default('us-east-1').describe('Region of those stores.'),
  accessKeyId: z.string().default('').describe('Name of the access key.'),
  secretAccessKey: z.string().default('').describe('Secret access key.'),
  sessionToken: z.string().default('').describe('Session token of temporary credentials.'),
});

const controller = z.strictObject({
  acceptUnsigned: z
    .boolean()
    .default(false)
    .describe(
      'Accept control commands, and in routers policies and in workers model versions, without a signature: whoever may write to the control topic or to Redis then decides. The embedded run does so whatever stands here: both are in its own process.',
    ),
  keys: z
    .string()
    .default('')
    .describe(
      'Key file: public keys that may sign control commands; routers check policies by it too, workers model versions. Where it is set, a signature that does not hold is always refused.',
    ),
  signingKey: z
    .string()
    .default('')
    .describe(
      'Private key of the controller (PEM): it signs the policies that the controller makes by tuning. Without it nothing is tuned where signatures are demanded.',
    ),
  signingKeyId: z
    .string()
    .default('controller')
    .describe("The key file's name for it; its role there is controller."),
  reconcileMs: durationMs.default(2_000).describe('How often the store is compared with the log.'),
  rollout: z
    .enum(['auto', 'staged', 'immediate'])
    .default('auto')
    .describe(
      'What becomes of a published version: staged waits for START and goes live by stages, immediate is live at once (the first version of a policy always is). auto: staged, but immediate in the embedded run.',
    ),
  autoStart: z
    .boolean()
    .default(false)
    .describe('Start the rollout of a published version by itself, where no other is on its way.'),
  autoPromote: z
    .boolean()
    .default(false)
    .describe(
      'A stage that passed goes on by itself; otherwise it waits for PROMOTE. START can say otherwise. In the embedded run it goes on by itself whatever stands here.',
    ),
  autoRollback: z
    .boolean()
    .default(true)
    .describe('Proven harm is rolled back by itself; otherwise it is a hold. START can say otherwise.'),
  lookMs: durationMs.default(10_000).describe('How often a running rollout is looked at.'),
  leaseMs: durationMs
    .default(60_000)
    .describe('Routers leave a canary when they heard nothing of its controller for so long.'),
  prometheusUrl: z
    .string()
    .regex(/^(https?:\/\/[^\s@]+)?$/)
    .meta({ title: 'an http(s) URL without credentials, or nothing' })
    .default('')
    .describe(
      'Prometheus that the queries in guardrails of policies are asked of; where it is empty, a policy that has any is refused.',
    ),
  prometheusToken: z
    .string()
    .trim()
    // Anything else cannot be sent, and an error would say what.
    .regex(/^[\x21-\x7e]*$/)
    .meta({ title: 'visible ASCII characters without spaces, or nothing' })
    .default('')
    .describe('Bearer token for it; none where empty.'),
  prometheusTimeoutMs: durationMs
    .default(2_000)
    .describe('How long it may take to answer a query; a query without an answer is a hold.'),
  tuning: z
    .boolean()
    .default(false)
    .describe('Move the tunable constants of live policies, off devices and memory domains that get slower.'),
  tuningPeriodMs: durationMs
    .default(DEFAULT_TUNING.periodMs)
    .describe('How often they are looked at; there is one step per period at most.'),
  tuningRequestsMin: count
    .default(DEFAULT_TUNING.requestsMin)
    .describe(
      'Fewest requests of a memory domain in one period that show anything; the default is for production.',
    ),
  shadowRequestsMin: count
    .default(10_000)
    .describe(
      'Fewest requests that both policies decide before a shadow ends; the default is for production.',
    ),
});

export const SettingsSchema = z.strictObject({
  installation: z
    .string()
    .default('')
    .describe(
      'Name of the installation in the signatures of commands that are signed with these settings; needed where the key has one in the key file.',
    ),
  prefix: z
    .string()
    .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/)
    .meta({ title: 'small letters, digits, ".", "_", "-"; at most 64, a letter or digit first' })
    .default('millrace')
    .describe('First part of all topic and group names.'),
  topology: z
    .enum(['split', 'fused'])
    .default('split')
    .describe('split: extractor and router are processes of their own; fused: the router process does both.'),
  logLevel: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Lowest level that is logged.'),
  registryUrl: z.string().default('').describe('Confluent-compatible schema registry.'),
  redisUrl: z.string().default('').describe('Redis of the control store.'),
  models: z.string().default('').describe('Model repository; the packaged one where empty.'),
  policy: z
    .string()
    .default('')
    .describe('Policy that is in force until the store names another; the packaged starter where empty.'),
  fleet: z
    .string()
    .default('')
    .describe('Fleet file: accelerator classes and their pools; the packaged one where empty.'),
  slotsPerPool: z.number().int().min(1).max(10_000).default(4).describe('Partitions of each dispatch topic.'),
  tenants: z
    .array(
      z
        .string()
        .regex(/^[a-z0-9-]{1,32}$/)
        .meta({ title: 'small letters, digits, "-"; at most 32' }),
    )
    .default([])
    .describe('Tenants with an ingress topic of their own.'),
  unacknowledgedMax: count.default(1_000).describe('Records of one partition in work at once.'),
  deadLetterPayload: z
    .enum(['full', 'hash'])
    .default('full')
    .describe('What a dead letter carries: the original bytes, or their hash.'),
  tries: z.number().int().min(1).max(100).default(3).describe('Tries before a record is poison.'),
  windowMs: durationMs.default(1_000).describe('Length of a window of metrics.'),
  kafka: kafka.prefault({}),
  registry: registry.prefault({}),
  http: http.prefault({}),
  limits: limits.prefault({}),
  router: router.prefault({}),
  worker: worker.prefault({}),
  features: features.prefault({}),
  openInference: openInference
    .refine(hasPathOfProtocol, {
      path: ['url'],
      message: 'http(s)://host:port, without a path, where openInference.protocol is grpc',
    })
    .prefault({}),
  s3: s3.prefault({}),
  controller: controller.prefault({}),
  guardrails: guardrailSettings.prefault({}),
});

export type Settings = z.infer<typeof SettingsSchema>;

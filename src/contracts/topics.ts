import type { Compatibility } from '../ports/schema-registry.ts';

/** A record kind: one Avro schema in schemas/<schema>.avsc, one TypeScript type of the same name. */
export type RecordName =
  | 'ScoreRequest'
  | 'RoutableRequest'
  | 'Dispatch'
  | 'DispatchAck'
  | 'ScoredResult'
  | 'Outcome'
  | 'WorkerWindow'
  | 'RouterWindow'
  | 'PoolStatus'
  | 'ControlCommand'
  | 'ControlEvent';

/** What a topic carries and how it is kept. `partitions: 'many'` is what the settings say. */
export interface TopicDefinition {
  record: RecordName;
  schema: string;
  compatibility: Compatibility;
  partitions: number | 'many';
  /** How long records are kept; `Infinity` for ever. */
  retentionMs: number;
  compacted: boolean;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const define = (
  record: RecordName,
  schema: string,
  rest: Partial<Omit<TopicDefinition, 'record' | 'schema'>>,
): TopicDefinition => ({
  record,
  schema,
  compatibility: 'FULL_TRANSITIVE',
  partitions: 'many',
  retentionMs: HOUR_MS,
  compacted: false,
  ...rest,
});

/** Every fixed topic of millrace, by the last part of its name. Dispatch, tenant and dead-letter topics follow below. */
export const TOPICS = {
  ingress: define('ScoreRequest', 'score-request.v1', {}),
  features: define('RoutableRequest', 'routable-request.v1', {}),
  acks: define('DispatchAck', 'dispatch-ack.v1', { retentionMs: 10 * MINUTE_MS }),
  'scored-results': define('ScoredResult', 'scored-result.v1', {}),
  outcomes: define('Outcome', 'outcome.v1', { retentionMs: 14 * DAY_MS }),
  'latency-metrics': define('WorkerWindow', 'worker-window.v1', { partitions: 4 }),
  'routing-metrics': define('RouterWindow', 'router-window.v1', { partitions: 4 }),
  'pool-status': define('PoolStatus', 'pool-status.v1', { partitions: 1, compacted: true }),
  control: define('ControlCommand', 'control-command.v1', { partitions: 1, retentionMs: Infinity }),
  'control-events': define('ControlEvent', 'control-event.v1', { partitions: 1, retentionMs: Infinity }),
} as const satisfies Record<string, TopicDefinition>;

export type TopicKey = keyof typeof TOPICS;

/** Dispatch topics: one per pool; their partitions are the pool's slots. */
export const DISPATCH_TOPIC: TopicDefinition = define('Dispatch', 'dispatch.v1', {});

export const DEAD_LETTER_RETENTION_MS = 72 * HOUR_MS;

/** Topic names under one prefix (`millrace` unless configured: tests and tenants of a shared cluster take their own). */
export interface TopicNames {
  readonly prefix: string;
  fixed(key: TopicKey): string;
  dispatch(pool: string): string;
  /** Ingress of one tenant; the default ingress without. */
  ingress(tenant?: string): string;
  deadLetter(topic: string): string;
}

export function topicNames(prefix = 'millrace'): TopicNames {
  return {
    prefix,
    fixed: (key) => `${prefix}.${key}.v1`,
    dispatch: (pool) => `${prefix}.dispatch.${pool}.v1`,
    ingress: (tenant) => (tenant === undefined ? `${prefix}.ingress.v1` : `${prefix}.ingress.${tenant}.v1`),
    deadLetter: (topic) => `${topic}.dlq`,
  };
}

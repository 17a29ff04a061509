import { memorySchemaRegistry } from '../../../src/adapters/memory/schema-registry.ts';
import { type Codecs, createCodecs } from '../../../src/contracts/codec.ts';
import type { DecodeLimits } from '../../../src/contracts/limits.ts';
import {
  type Dispatch,
  makeDispatch,
  makeRoutableRequest,
  makeScoreRequest,
  type RoutableRequest,
  type ScoredResult,
  type ScoreRequest,
} from '../../../src/contracts/records.ts';
import { recordTopics } from '../../../src/contracts/topic-specs.ts';
import { topicNames } from '../../../src/contracts/topics.ts';
import type { ErrorCode } from '../../../src/core/errors.ts';
import type { InboundRecord, OutboundRecord } from '../../../src/ports/message-bus.ts';
import { virtualClock } from '../../../src/simulation/virtual-clock.ts';
import type { Delivery } from '../../../src/stages/run-stage.ts';

export const topics = topicNames('test');
export const POOLS = ['cpu', 'cpu-spot', 'gpu'];

/** Codecs of every record, over a registry of their own; schemas have the same ids in all of them. */
export async function openCodecs(limits: Partial<DecodeLimits> = {}): Promise<Codecs> {
  const opened = createCodecs({ registry: memorySchemaRegistry(), clock: virtualClock(), limits });
  await opened.register(recordTopics({ topics, tenants: [], pools: POOLS }));
  return opened;
}

export const codecs: Codecs = await openCodecs();

export function inbound(fields: Partial<InboundRecord> = {}): InboundRecord {
  return {
    topic: topics.ingress(),
    partition: 0,
    offset: 0,
    timestampMs: 0,
    key: Buffer.from('key'),
    value: null,
    headers: {},
    assignment: 1,
    ...fields,
  };
}

/** A delivery that writes down how it ends. */
export interface Recorded<T> extends Delivery<T> {
  readonly finished: OutboundRecord[][];
  readonly letters: { code: ErrorCode; message: string }[];
  abandonments: number;
}

export function delivery<T>(
  value: T,
  fields: Partial<Pick<Delivery<T>, 'record' | 'receivedAtMs' | 'inTopicMs'>> = {},
): Recorded<T> {
  const finished: OutboundRecord[][] = [];
  const letters: { code: ErrorCode; message: string }[] = [];
  const recorded: Recorded<T> = {
    record: inbound(),
    value,
    receivedAtMs: 0,
    inTopicMs: 0,
    ...fields,
    finished,
    letters,
    abandonments: 0,
    finish: (outputs) => finished.push([...outputs]),
    deadLetter: (code, message) => letters.push({ code, message }),
    abandon: () => {
      recorded.abandonments += 1;
    },
  };
  return recorded;
}

/** How often it ended, in whatever way. */
export function endings(recorded: Recorded<unknown>): number {
  return recorded.finished.length + recorded.letters.length + recorded.abandonments;
}

export function scoreRequest(fields: Partial<ScoreRequest> = {}): ScoreRequest {
  return makeScoreRequest({ requestId: 'r1', model: 'ranker', baselineCandidates: 2, ...fields });
}

export function routable(fields: Partial<RoutableRequest> = {}): RoutableRequest {
  return makeRoutableRequest({
    requestId: 'r1',
    identity: { topic: topics.ingress(), partition: 3, offset: 7 },
    model: 'ranker',
    budgetMs: 100,
    budgetRemainingMs: 100,
    candidateCount: 2,
    baselineCandidates: 2,
    payload: Buffer.from('payload'),
    ...fields,
  });
}

export function dispatch(fields: Partial<Dispatch> = {}): Dispatch {
  return makeDispatch({
    requestId: 'r1',
    identity: { topic: topics.ingress(), partition: 3, offset: 7 },
    accelerator: 'cpu',
    pool: 'cpu',
    kernel: 'dense',
    memory: 'host',
    model: 'ranker',
    modelVersion: '1',
    scoreLimit: 2,
    baselineCandidates: 2,
    policy: {
      digest: 'sha256:0',
      name: 'p',
      version: 1,
      epoch: 1,
      leaf: 'all',
      arm: 'STABLE',
      analysed: true,
    },
    budgetMs: 100,
    budgetRemainingMs: 80,
    predictedMs: 3,
    router: 'router#1',
    ackPartition: 2,
    sequence: 1,
    payload: codecs.for('ScoreRequest').encode(scoreRequest()),
    ...fields,
  });
}

export function resultOf(output: OutboundRecord | undefined): ScoredResult {
  const decoded = codecs.for('ScoredResult').decode(output?.value ?? null);
  if (decoded.status !== 'ok') throw new Error(`no result: ${JSON.stringify(decoded)}`);
  return decoded.value;
}

/** The result that a delivery ended with, where that is all it ended with. */
export function onlyResult(recorded: Recorded<unknown>): ScoredResult {
  if (endings(recorded) !== 1 || recorded.finished[0]?.length !== 1)
    throw new Error('it did not end with one result');
  return resultOf(recorded.finished[0][0]);
}

import type { Codecs, RecordCodec } from '../../contracts/codec.ts';
import { carrying, schemaOf } from '../../contracts/headers.ts';
import {
  makeRoutableRequest,
  makeTimings,
  type RoutableRequest,
  type ScoredResult,
  type ScoreRequest,
} from '../../contracts/records.ts';
import { checkRequest } from '../../core/request/check.ts';
import type { FamilyContract } from '../../core/request/family.ts';
import type { RequestLimits } from '../../core/request/limits.ts';
import { partitionForKey } from '../../core/request/partition.ts';
import { isLongerThan } from '../../core/request/utf8.ts';
import { SIGNALS_VERSION, type SignalExtractor } from '../../core/signals/extract.ts';
import type { Clock } from '../../ports/clock.ts';
import type { InboundRecord, OutboundRecord } from '../../ports/message-bus.ts';
import { requestName } from '../request-name.ts';
import { endedResult } from '../results.ts';
import type { Delivery } from '../run-stage.ts';

export interface ExtractorConfig {
  families: ReadonlyMap<string, FamilyContract>;
  limits: RequestLimits;
}

export interface ExtractorDeps {
  clock: Clock;
  codecs: Pick<Codecs, 'fingerprintIn'>;
  signals: SignalExtractor;
}

/** Either a request that can be routed, or the result that ends it here. */
export type Extraction =
  | { status: 'routable'; request: RoutableRequest }
  | { status: 'ended'; result: ScoredResult; resultPartition: number | null };

/** Reads the signals off one request and checks it; the payload is passed on byte for byte. */
export type Extract = (delivery: Delivery<ScoreRequest>) => Extraction;

export function createExtractor(config: ExtractorConfig, deps: ExtractorDeps): Extract {
  return (delivery) => {
    const { record, value: request, inTopicMs } = delivery;
    const startedMs = deps.clock.monotonicMs();
    const check = checkRequest(request, config.families, config.limits);
    if (check.status === 'rejected') {
      return ended(delivery, config.limits, deps.clock, {
        outcome: 'REJECTED',
        code: check.code,
        message: check.message,
      });
    }
    const signals = deps.signals.extract(check);
    const nowMs = deps.clock.monotonicMs();
    const extractMs = nowMs - delivery.receivedAtMs;
    return {
      status: 'routable',
      request: makeRoutableRequest({
        requestId: request.requestId,
        identity: identityOf(record),
        model: check.family.family,
        modelVersion: check.version ?? null,
        signals: { ...request.hints, ...signals },
        signalsVersion: SIGNALS_VERSION,
        extractionUs: (nowMs - startedMs) * 1_000,
        budgetMs: check.budgetMs,
        budgetRemainingMs: check.budgetMs - inTopicMs - extractMs,
        inTopicMs,
        extractMs,
        priority: request.priority,
        value: check.value,
        bucketKey: check.bucketKey,
        region: request.region,
        candidateCount: check.candidateCount,
        baselineCandidates: request.baselineCandidates,
        candidateValues: request.candidateValues,
        context: { ...check.context },
        experiments: request.experiments,
        optOut: request.optOut,
        pin: request.pin,
        resultPartition: request.resultPartition,
        explain: request.explain,
        payloadSchema: schemaOf(record.headers) ?? deps.codecs.fingerprintIn(record.value),
        payload: record.value ?? Buffer.alloc(0),
      }),
    };
  };
}

/** The features record of a routable request, on the partition that its id gives. */
export function featuresRecord(
  request: RoutableRequest,
  codec: RecordCodec<RoutableRequest>,
  topic: string,
  partitions: number,
): OutboundRecord {
  const key = Buffer.from(request.requestId);
  return {
    topic,
    partition: partitionForKey(key, partitions),
    key,
    value: codec.encode(request),
    headers: carrying(codec.headers, request),
  };
}

export function identityOf(record: InboundRecord): { topic: string; partition: number; offset: number } {
  return { topic: record.topic, partition: record.partition, offset: record.offset };
}

function ended(
  delivery: Delivery<ScoreRequest>,
  limits: RequestLimits,
  clock: Clock,
  ending: Parameters<typeof endedResult>[1],
): Extraction {
  const { record, value: request, inTopicMs } = delivery;
  const extractMs = clock.monotonicMs() - delivery.receivedAtMs;
  const result = endedResult(
    {
      requestId: requestName(request.requestId, record),
      identity: identityOf(record),
      baselineCandidates: request.baselineCandidates,
      ...repeatedTexts(request, limits),
      timings: makeTimings({ inTopicMs, extractMs, totalMs: inTopicMs + extractMs }),
    },
    ending,
  );
  return { status: 'ended', result, resultPartition: request.resultPartition };
}

/** What a refusal repeats of its request: texts that a request may have. Others would make the answer as large as the request. */
function repeatedTexts(
  { model, experiments }: ScoreRequest,
  { textBytesMax, experimentsMax }: RequestLimits,
): Pick<ScoreRequest, 'model' | 'experiments'> {
  const texts = Object.entries(experiments);
  const isTooMuch =
    texts.length > experimentsMax || texts.flat().some((text) => isLongerThan(text, textBytesMax));
  return {
    model: isLongerThan(model, textBytesMax) ? '' : model,
    experiments: isTooMuch ? {} : experiments,
  };
}

import { identityKey, type RequestIdentity } from '../core/outcome/identity.ts';
import type { Headers, InboundRecord } from '../ports/message-bus.ts';
import { readText } from './short-text.ts';

/** W3C trace context, as OpenTelemetry's messaging conventions carry it on Kafka. */
export const TRACEPARENT = 'traceparent';
export const TRACESTATE = 'tracestate';

export interface TraceContext {
  /** 32 lower-case hex digits, not all zero. */
  traceId: string;
  /** The span that sent the record: 16 lower-case hex digits, not all zero. */
  spanId: string;
  sampled: boolean;
}

const TRACEPARENT_LENGTH = 55;
const TRACE_LENGTH_MAX = 512;
const TRACEPARENT_PATTERN =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;

/**
 * The trace that a record belongs to; undefined where it has none or one that is not valid, which is then no reason to refuse the record.
 * Later versions of the header may be longer. Source: W3C Trace Context, "Versioning of traceparent".
 */
export function readTraceContext(headers: Headers): TraceContext | undefined {
  const header = headers[TRACEPARENT];
  if (header === undefined || header.length < TRACEPARENT_LENGTH || header.length > TRACE_LENGTH_MAX)
    return undefined;
  const text = header.toString('latin1');
  const match = TRACEPARENT_PATTERN.exec(text);
  const [, traceId, spanId, flags] = match ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (text.startsWith('00-') && text.length !== TRACEPARENT_LENGTH) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function traceparent({ traceId, spanId, sampled }: TraceContext): Buffer {
  return Buffer.from(`00-${traceId}-${spanId}-${sampled ? '01' : '00'}`, 'latin1');
}

/** The headers that a stage hands on from the record it read to those that it writes: the trace, and nothing else. */
export function passedOn(headers: Headers): Headers {
  const parent = headers[TRACEPARENT];
  if (parent === undefined || parent.length > TRACE_LENGTH_MAX) return NO_HEADERS;
  const state = headers[TRACESTATE];
  if (state === undefined || state.length > TRACE_LENGTH_MAX) return { [TRACEPARENT]: parent };
  return { [TRACEPARENT]: parent, [TRACESTATE]: state };
}

const NO_HEADERS: Headers = {};

/** Fingerprint of the schema that the value was written with (see `fingerprintOf`), as text. */
export const SCHEMA = 'millrace.schema';
/** On features and dispatch: which request the record is about, `topic/partition/offset`, for whoever cannot read the value. */
export const IDENTITY = 'millrace.identity';
/** Beside it where the request names one: the partition of scored-results on which its result is awaited. */
export const RESULT_PARTITION = 'millrace.result-partition';

const FINGERPRINT_LENGTH = 16;
const NO_BYTES = Buffer.alloc(0);

/** What a record says of its schema besides the id in its frame; undefined where it says nothing. */
export function schemaOf(headers: Headers): string | undefined {
  const header = headers[SCHEMA];
  return header?.length === FINGERPRINT_LENGTH
    ? readText({ buf: header, pos: 0 }, FINGERPRINT_LENGTH)
    : undefined;
}

/** What a record on features or dispatch says of its request outside of its value. */
export interface CarriedRequest {
  requestId: string;
  identity: RequestIdentity;
  resultPartition: number | null;
}

/** The headers of a record that stages hand to each other. @param schema those of its codec */
export function carrying(
  schema: Headers,
  { identity, resultPartition }: Pick<CarriedRequest, 'identity' | 'resultPartition'>,
): Headers {
  const of = Buffer.from(identityKey(identity), 'latin1');
  // Written out, for the engine makes such an object at once; a copy of another it makes name by name.
  const headers = { [SCHEMA]: schema[SCHEMA] ?? NO_BYTES, [IDENTITY]: of };
  return resultPartition === null
    ? headers
    : { ...headers, [RESULT_PARTITION]: Buffer.from(String(resultPartition), 'latin1') };
}

/** Kafka's names of topics have at most 249 characters. */
const IDENTITY_PATTERN = /^([^/]{1,249})\/(\d{1,10})\/(\d{1,15})$/;
const PARTITION_PATTERN = /^\d{1,10}$/;

/**
 * Reads them back; undefined where they do not name a request. Only where stages alone may write: on ingress a client could name the request of
 * another.
 */
export function carriedRequest({ key, headers }: InboundRecord): CarriedRequest | undefined {
  const [, topic, partition, offset] = IDENTITY_PATTERN.exec(headers[IDENTITY]?.toString() ?? '') ?? [];
  if (topic === undefined) return undefined;
  const wanted = headers[RESULT_PARTITION]?.toString() ?? '';
  return {
    requestId: key?.toString() ?? '',
    identity: { topic, partition: Number(partition), offset: Number(offset) },
    resultPartition: PARTITION_PATTERN.test(wanted) ? Number(wanted) : null,
  };
}

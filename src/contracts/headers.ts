import type { Headers } from '../ports/message-bus.ts';

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

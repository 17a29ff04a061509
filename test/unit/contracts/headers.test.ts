import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  carriedRequest,
  carrying,
  passedOn,
  readTraceContext,
  schemaOf,
  traceparent,
} from '../../../src/contracts/headers.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const RECORD = {
  topic: 't',
  partition: 0,
  offset: 0,
  timestampMs: 0,
  key: null,
  value: null,
  headers: {},
  assignment: 1,
};
const headersOf = (text: string) => ({ traceparent: Buffer.from(text) });

describe('traceparent', () => {
  it.each([true, false])('reads what it writes (sampled: %s)', (sampled) => {
    const context = { traceId: TRACE_ID, spanId: SPAN_ID, sampled };
    expect(readTraceContext({ traceparent: traceparent(context) })).toEqual(context);
  });

  it.each([
    ['flags beyond sampled', `00-${TRACE_ID}-${SPAN_ID}-03`, true],
    ['a later version', `cc-${TRACE_ID}-${SPAN_ID}-00`, false],
    ['a later version with more parts', `cc-${TRACE_ID}-${SPAN_ID}-01-what-the-future-holds`, true],
  ])('accepts %s', (_, text, sampled) => {
    expect(readTraceContext(headersOf(text))).toEqual({ traceId: TRACE_ID, spanId: SPAN_ID, sampled });
  });

  it.each([
    ['nothing', ''],
    ['other text', 'hello'],
    ['version ff', `ff-${TRACE_ID}-${SPAN_ID}-01`],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${SPAN_ID}-01`],
    ['a span id of zeros', `00-${TRACE_ID}-${'0'.repeat(16)}-01`],
    ['upper case', `00-${TRACE_ID.toUpperCase()}-${SPAN_ID}-01`],
    ['more parts in version 00', `00-${TRACE_ID}-${SPAN_ID}-01-more`],
    ['a tail without a dash', `cc-${TRACE_ID}-${SPAN_ID}-01more`],
    ['a header of a kilobyte', `cc-${TRACE_ID}-${SPAN_ID}-01-${'x'.repeat(1_000)}`],
  ])('passes over %s', (_, text) => {
    expect(readTraceContext(headersOf(text))).toBeUndefined();
  });

  it('is no reason to refuse a record that has none', () => {
    expect(readTraceContext({})).toBeUndefined();
  });
});

describe('handed on', () => {
  const parent = Buffer.from(`00-${TRACE_ID}-${SPAN_ID}-01`);
  const state = Buffer.from('vendor=1');

  it('the trace, and nothing else', () => {
    expect(passedOn({ traceparent: parent, tracestate: state, tenant: Buffer.from('a') })).toEqual({
      traceparent: parent,
      tracestate: state,
    });
    expect(passedOn({ traceparent: parent })).toEqual({ traceparent: parent });
    expect(passedOn({ tracestate: state, tenant: Buffer.from('a') })).toEqual({});
  });

  it('nothing longer than the standard asks for', () => {
    expect(passedOn({ traceparent: Buffer.alloc(513), tracestate: state })).toEqual({});
    expect(passedOn({ traceparent: parent, tracestate: Buffer.alloc(513) })).toEqual({ traceparent: parent });
  });
});

describe('what stages say of a request beside the value', () => {
  const request = fc.record({
    requestId: fc.string({ minLength: 1, maxLength: 100, unit: 'grapheme' }),
    identity: fc.record({
      topic: fc.stringMatching(/^[a-zA-Z0-9._-]{1,249}$/),
      partition: fc.nat(),
      offset: fc.nat({ max: 10 ** 15 - 1 }),
    }),
    resultPartition: fc.option(fc.nat()),
  });
  const SCHEMA = { 'millrace.schema': Buffer.from('0123456789abcdef') };

  it('is read back as it was', () => {
    fc.assert(
      fc.property(request, (said) => {
        const headers = carrying(SCHEMA, said);
        expect(schemaOf(headers)).toBe('0123456789abcdef');
        const key = Buffer.from(said.requestId);
        expect(carriedRequest({ ...RECORD, key, headers })).toEqual(said);
      }),
    );
  });

  it('is never read out of what is no identity, and never throws', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (identity, partition) => {
        const headers = {
          'millrace.identity': Buffer.from(identity),
          'millrace.result-partition': Buffer.from(partition),
        };
        const read = carriedRequest({ ...RECORD, headers });
        if (read !== undefined) expect(String(headers['millrace.identity'])).toContain(read.identity.topic);
      }),
    );
  });

  it.each(['', 'short', 'longer than sixteen digits'])('is no fingerprint: %j', (text) => {
    expect(schemaOf({ 'millrace.schema': Buffer.from(text) })).toBeUndefined();
  });
});

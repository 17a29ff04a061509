import { describe, expect, it } from 'vitest';
import { passedOn, readTraceContext, traceparent } from '../../../src/contracts/headers.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
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

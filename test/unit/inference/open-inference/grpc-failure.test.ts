import { Metadata, status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { AnswerError, Unavailable } from '../../../../src/inference/open-inference/failures.ts';
import { failureOf, NoSuchModel } from '../../../../src/inference/open-inference/grpc-failure.ts';

const WAITING = new AbortController().signal;
const TIMED_OUT = AbortSignal.abort(new Error('it did not answer in time'));

/** As the library gives it: of the server with its headers, of its own making without. */
function failure(code: status, details: string, isAnswer: boolean, signal = WAITING) {
  const metadata = new Metadata();
  if (isAnswer) metadata.set('content-type', 'application/grpc');
  return failureOf(status, { code, details, metadata }, signal);
}

describe('what a server says', () => {
  it.each([
    [status.UNAVAILABLE, 'loading', Unavailable],
    [status.CANCELLED, 'stopping', Unavailable],
    [status.RESOURCE_EXHAUSTED, 'queue is full', Unavailable],
    [status.RESOURCE_EXHAUSTED, 'SERVER: Received message larger than max (5 vs. 4)', AnswerError],
    [status.RESOURCE_EXHAUSTED, 'gRPC message exceeds maximum size 4: 5', AnswerError],
    [status.NOT_FOUND, 'unknown model', NoSuchModel],
    [status.INVALID_ARGUMENT, 'wrong shape', AnswerError],
    [status.INTERNAL, 'Received RST_STREAM', AnswerError],
    [status.UNIMPLEMENTED, 'no such method', AnswerError],
    [status.UNAUTHENTICATED, 'who is it?', AnswerError],
    [status.UNKNOWN, 'ValueError', AnswerError],
  ])('%i %s', (code, details, kind) => {
    const failed = failure(code, details, true);
    expect(failed.constructor).toBe(kind);
    expect(failed.message).toBe(`gRPC ${status[code]}: ${details}`);
    if (failed instanceof Unavailable) expect(failed.wasAnswered).toBe(true);
  });

  it('may be that the time is over', () => {
    expect(failure(status.DEADLINE_EXCEEDED, 'Deadline Exceeded', true)).toMatchObject({
      message: 'it did not answer in time (gRPC DEADLINE_EXCEEDED: Deadline Exceeded)',
      wasAnswered: true,
    });
  });

  it('may have a code that gRPC does not', () => {
    expect(failure(99 as status, 'odd', true).message).toBe('gRPC status 99: odd');
  });

  it('may be without a reason', () => {
    expect(failure(status.INVALID_ARGUMENT, '', true).message).toBe(
      'gRPC INVALID_ARGUMENT, without a reason',
    );
  });
});

describe('what is said where no server answered', () => {
  it.each([
    [
      status.UNAVAILABLE,
      'No connection established. Last error: Error: connect ECONNREFUSED 127.0.0.1:1. Resolution note: ',
      'connect ECONNREFUSED 127.0.0.1:1',
    ],
    [
      status.UNAVAILABLE,
      'No connection established. Last error: Protocol error (2026-01-01T00:00:00.000Z). Resolution note: ',
      'what answers there speaks no gRPC',
    ],
    [status.UNAVAILABLE, 'Connection dropped', 'Connection dropped'],
    [status.DEADLINE_EXCEEDED, 'Deadline exceeded after 0.3s', 'it did not answer in time'],
    [
      status.INTERNAL,
      'Received RST_STREAM with code 2 triggered by internal client error: write EPIPE',
      'Received RST_STREAM with code 2 triggered by internal client error: write EPIPE',
    ],
    [status.RESOURCE_EXHAUSTED, 'Bandwidth exhausted', 'gRPC RESOURCE_EXHAUSTED: Bandwidth exhausted'],
  ])('%i %s', (code, details, message) => {
    const failed = failure(code, details, false);
    expect(failed).toBeInstanceOf(Unavailable);
    expect(failed).toMatchObject({ message, wasAnswered: false });
  });

  it('is why the call was ended, where it was', () => {
    expect(failure(status.CANCELLED, 'Cancelled on client', false, TIMED_OUT)).toMatchObject({
      message: 'it did not answer in time',
      wasAnswered: false,
    });
  });

  it.each([
    [status.RESOURCE_EXHAUSTED, 'Received message larger than max (3000000 vs 2097152)'],
    [status.INTERNAL, 'Response message parsing error: index out of range'],
  ])('of an answer that came and cannot be read, it is asked no more: %i %s', (code, details) => {
    expect(failure(code, details, false).constructor).toBe(AnswerError);
  });
});

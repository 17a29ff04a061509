import type { SendOutcome } from './client.ts';

const TOO_LARGE = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);
const INVALID = new Set(['INVALID_RECORD', 'INVALID_TIMESTAMP', 'UNSUPPORTED_FOR_MESSAGE_FORMAT']);
/** The broker and an idempotent producer count differently: the producer has to begin anew. */
const OUT_OF_STEP = new Set([
  'OUT_OF_ORDER_SEQUENCE_NUMBER',
  'UNKNOWN_PRODUCER_ID',
  'INVALID_PRODUCER_EPOCH',
  'PRODUCER_FENCED',
]);

/** What one partition's error in a produce answer means, by Kafka's name of it. What is not known may pass. */
export function sendOutcomeOf(errorId: string, error: unknown): SendOutcome {
  // A repeated batch that is older than those whose offsets the broker remembers: it is stored.
  if (errorId === 'DUPLICATE_SEQUENCE_NUMBER') return { status: 'stored', baseOffset: -1 };
  if (TOO_LARGE.has(errorId)) return { status: 'too-large', error };
  if (INVALID.has(errorId)) return { status: 'invalid', error };
  return { status: 'delayed', error };
}

export function isOutOfStep(errorId: string): boolean {
  return OUT_OF_STEP.has(errorId);
}

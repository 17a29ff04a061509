import type { RoutableRequest } from '../../contracts/records.ts';
import type { ErrorCode } from '../../core/errors.ts';
import type { InboundRecord, OutboundRecord } from '../../ports/message-bus.ts';

/** A request in the router's hands, from whichever record it came. */
export interface RouteJob {
  request: RoutableRequest;
  record: InboundRecord;
  receivedAtMs: number;
  /** Time in topics up to here, the features topic included. */
  inTopicMs: number;
  /** On the router's monotonic clock: when the budget runs out. */
  deadlineMs: number;
  finish(outputs: readonly OutboundRecord[]): void;
  deadLetter(code: ErrorCode, message: string): void;
  abandon(): void;
}

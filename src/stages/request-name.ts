import { isLongerThan } from '../core/request/utf8.ts';
import type { InboundRecord } from '../ports/message-bus.ts';

/** Longer than any request may have, so that who overshoots still finds the answer; short enough for a result's key and value. */
const REPEATED_BYTES_MAX = 1_024;
const KEY_BYTES_MAX = 128;

/**
 * The requestId that a result goes by: the request's own; where it has none that can be read, or one that no result could carry, the
 * record's key if that is text of at most 128 bytes; else `topic/partition/offset`.
 */
export function requestName(requestId: string | undefined, record: InboundRecord): string {
  if (requestId !== undefined && !isLongerThan(requestId, REPEATED_BYTES_MAX)) return requestId;
  return textKey(record) ?? `${record.topic}/${record.partition}/${record.offset}`;
}

/** The key where it is printable UTF-8 of a request id's length. */
function textKey({ key }: InboundRecord): string | undefined {
  if (key === null || key.length === 0 || key.length > KEY_BYTES_MAX) return undefined;
  const text = key.toString('utf8');
  return Buffer.byteLength(text) === key.length && !/[\p{Cc}\ufffd]/u.test(text) ? text : undefined;
}

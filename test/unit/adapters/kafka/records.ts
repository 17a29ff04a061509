import type { InboundRecord } from '../../../../src/ports/message-bus.ts';

/** An inbound record of the partition that most tests use. */
export function record(offset: number, bytes = 1, fields: Partial<InboundRecord> = {}): InboundRecord {
  return {
    topic: 'topic',
    partition: 0,
    offset,
    timestampMs: 0,
    key: null,
    value: Buffer.alloc(bytes),
    headers: {},
    assignment: 1,
    ...fields,
  };
}

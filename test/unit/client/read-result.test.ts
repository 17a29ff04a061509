import { expect, it } from 'vitest';
import { readResult } from '../../../src/client/read-result.ts';
import type { InboundRecord } from '../../../src/ports/message-bus.ts';
import { memoryInstallation } from './memory-installation.ts';

it('a result in a batch that was refused is unreadable for the reason of the batch', async () => {
  const installation = await memoryInstallation();
  const connection = await installation.open();
  const record: InboundRecord = {
    topic: 'results',
    partition: 1,
    offset: 9,
    timestampMs: 0,
    key: null,
    value: null,
    headers: {},
    assignment: 1,
    unreadable: {
      code: 'TOO_LARGE',
      reason: 'unpacks to much',
      firstOffset: 9,
      lastOffset: 9,
      digest: 'ff',
    },
  };
  expect(await readResult(connection, record, () => true)).toMatchObject({
    status: 'unreadable',
    unreadable: { code: 'TOO_LARGE', message: 'unpacks to much', partition: 1, offset: 9 },
  });
  await connection.close();
  await installation.close();
});

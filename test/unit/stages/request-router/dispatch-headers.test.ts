import { expect, it } from 'vitest';
import { carriedRequest, schemaOf } from '../../../../src/contracts/headers.ts';
import { codecs, inbound } from '../records.fixture.ts';
import { dispatchOf, startRouter, status } from './router.fixture.ts';

it.each([2, null])(
  'a dispatch says beside its value what it is written with, and whose it is',
  (resultPartition) => {
    const { router, route } = startRouter();
    router.onStatus(status());
    const job = route({ resultPartition, payloadSchema: '0123456789abcdef' });
    const { identity, requestId, payloadSchema } = dispatchOf(job);
    const { headers = {}, key = null } = job.outputs[0] ?? {};
    expect(schemaOf(headers)).toBe(schemaOf(codecs.for('Dispatch').headers));
    expect(carriedRequest(inbound({ key, headers }))).toEqual({ requestId, identity, resultPartition });
    expect(payloadSchema).toBe('0123456789abcdef');
  },
);

import { expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { makePoolStatus } from '../../../src/contracts/records.ts';
import { MillraceError } from '../../../src/core/errors.ts';
import type { InboundRecord, MessageBus } from '../../../src/ports/message-bus.ts';
import { follow } from '../../../src/stages/follow.ts';
import { codecs, topics } from './records.fixture.ts';

it.each([
  ['cannot use', new MillraceError('MALFORMED', 'that is no sketch of latencies'), 'warn'],
  ['fails on', new TypeError('odd'), 'error'],
])(
  'a record that its reader %s takes none of those with it that came in the same fetch',
  async (_what, error, level) => {
    let deliver: (records: readonly InboundRecord[]) => void = () => undefined;
    const read: MessageBus['read'] = async (_options, onRecords) => {
      deliver = onRecords;
      const nothing = (): void => undefined;
      return { caughtUp: Promise.resolve(), pause: nothing, resume: nothing, close: async () => undefined };
    };
    const taken: string[] = [];
    const telemetry = silentTelemetry();
    const deps = { bus: { read } as MessageBus, codecs, topics, telemetry };
    await follow(deps, 'pool-status', 'PoolStatus', ({ worker }) => {
      if (worker === 'odd') throw error;
      taken.push(worker);
    });
    const codec = codecs.for('PoolStatus');
    const records = ['one', 'odd', 'two'].map((worker) => ({
      key: null,
      headers: {},
      value: codec.encode(
        makePoolStatus({
          worker,
          pool: 'a100',
          capacityClass: 'DEDICATED',
          incarnation: '1',
          accelerator: 'gpu-a100',
          backend: 'simulated',
          simulated: true,
          models: [],
          build: '1',
        }),
      ),
    }));
    deliver(records as unknown as InboundRecord[]);
    expect(taken).toEqual(['one', 'two']);
    expect(telemetry.logs.map((entry) => entry.level)).toEqual([level]);
  },
);

import { describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { MillraceError } from '../../../src/core/errors.ts';
import type { MessageBus, OutboundRecord } from '../../../src/ports/message-bus.ts';
import type { LogFields } from '../../../src/ports/telemetry.ts';
import { produceAside } from '../../../src/stages/stage.ts';

function start(refusal?: Error) {
  const stored: OutboundRecord[] = [];
  const warned: LogFields[] = [];
  const silent = silentTelemetry();
  const telemetry = {
    ...silent,
    logger: { ...silent.logger, warn: (fields: LogFields) => void warned.push(fields) },
  };
  const bus: Pick<MessageBus, 'produce'> = {
    produce: async (record) => {
      if (refusal !== undefined) throw refusal;
      stored.push(record);
    },
  };
  return { stored, warned, deps: { telemetry, bus: bus as MessageBus } };
}

const RECORD = { partition: 0, key: null, value: null };

describe('what is produced aside', () => {
  it('is made before the call returns, and stored', async () => {
    const { deps, stored, warned } = start();
    let isMade = false;
    const storing = produceAside(deps, 'side', () => {
      isMade = true;
      return RECORD;
    });
    expect(isMade).toBe(true);
    await storing;
    expect(stored).toEqual([{ ...RECORD, topic: 'side' }]);
    expect(warned).toEqual([]);
  });

  it('is logged where the bus refuses it', async () => {
    const { deps, warned } = start(new MillraceError('CLOSED', 'the bus is closed'));
    await produceAside(deps, 'side', () => RECORD);
    expect(warned).toMatchObject([{ topic: 'side', error: expect.stringContaining('the bus is closed') }]);
  });

  it('is logged where it is too large to be written', async () => {
    const { deps, stored, warned } = start();
    await produceAside(deps, 'side', () => {
      throw new MillraceError('TOO_LARGE', 'PoolStatus is too large');
    });
    expect(stored).toEqual([]);
    expect(warned).toMatchObject([{ topic: 'side', error: expect.stringContaining('PoolStatus') }]);
  });

  it.each([
    new MillraceError('MALFORMED', 'utilisation is no number'),
    new TypeError('undefined is no function'),
  ])('is a fault of ours where making it throws %s, and never of whoever asked for it', async (fault) => {
    const { deps, warned } = start();
    // Nothing is thrown here: a caller that catches everything would keep it to itself.
    const storing = produceAside(deps, 'side', () => {
      throw fault;
    });
    await expect(storing).rejects.toBe(fault);
    expect(warned).toEqual([]);
  });
});

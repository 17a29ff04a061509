import { describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import { FleetState } from '../../../../src/core/routing/fleet-state.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';
import { UnheldSlots } from '../../../../src/stages/request-router/unheld-slots.ts';
import { workerStatus } from '../../core/routing/routing.fixture.ts';

/** A pool of four slots, looked at once a second, whose worker holds some of them. */
function start() {
  const clock = virtualClock();
  const telemetry = silentTelemetry();
  const fleet = new FleetState({ statusStaleMs: 1_000, creditsMax: 10 });
  const unheld = new UnheldSlots(fleet, () => [['cpu', 4]], { clock, telemetry });
  let sequence = 0;
  const seconds = async (count: number, held: readonly number[] | undefined): Promise<void> => {
    for (let n = 0; n < count; n += 1) {
      sequence += 1;
      if (held !== undefined) fleet.applyStatus(workerStatus({ slots: held, sequence }), clock.monotonicMs());
      unheld.observe();
      await clock.advanceBy(1_000);
    }
  };
  const gauge = (): number => telemetry.value('millrace_slots_without_owner', { pool: 'cpu' });
  return { telemetry, seconds, gauge };
}

describe('slots without an owner', () => {
  it('are counted at once, those of a silent worker too', async () => {
    const { seconds, gauge } = start();
    await seconds(1, [0]);
    expect(gauge()).toBe(3);
    await seconds(1, [0, 1, 2, 3]);
    expect(gauge()).toBe(0);
    await seconds(3, undefined);
    expect(gauge()).toBe(4);
  });

  it('are told of once, and so is that they have one', async () => {
    const { seconds, telemetry } = start();
    await seconds(60, [0]);
    expect(telemetry.logs).toMatchObject([
      { level: 'warn', fields: { pool: 'cpu', slots: [1, 2, 3], of: 4 } },
    ]);
    await seconds(60, [0, 1]);
    expect(telemetry.logs.slice(1)).toMatchObject([{ level: 'warn', fields: { slots: [2, 3] } }]);
    await seconds(60, [0, 1, 2, 3]);
    expect(telemetry.logs.slice(2)).toMatchObject([
      { level: 'info', message: 'every slot of the pool has an owner again' },
    ]);
  });

  it('are no news while they change hands, nor before the workers are heard', async () => {
    const { seconds, telemetry } = start();
    await seconds(3, [0]);
    await seconds(60, [0, 1, 2, 3]);
    await seconds(8, [0, 1]);
    await seconds(60, [0, 1, 2, 3]);
    expect(telemetry.logs).toEqual([]);
  });
});

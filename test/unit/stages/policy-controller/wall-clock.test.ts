import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../../src/ports/clock.ts';
import { command } from './controller.fixture.ts';
import { decisions, MINUTE_MS, rolling, rolloutOf, toCanary } from './rollout.fixture.ts';

const HOUR_MS = 3_600_000;

function settable(clock: Clock): Clock & { skewMs: number } {
  return {
    skewMs: 0,
    wallMs() {
      return clock.wallMs() + this.skewMs;
    },
    monotonicMs: () => clock.monotonicMs(),
    after: (delayMs, callback) => clock.after(delayMs, callback),
    every: (periodMs, callback) => clock.every(periodMs, callback),
  };
}

describe('a wall clock that jumps', () => {
  it.each([3_600_000, -3_600_000])('by %i ms changes neither dwell times nor looks', async (jumpMs) => {
    const scene = await rolling();
    await toCanary(scene);
    await scene.room.world.settle(scene.leading.stage.close());
    const clock = settable(scene.room.world.clock);
    const leading = await scene.next({ deps: { clock } });
    await scene.room.world.clock.advanceBy(MINUTE_MS);
    const { observedMs } = rolloutOf({ leading });
    clock.skewMs = jumpMs;
    await scene.room.world.clock.advanceBy(MINUTE_MS);
    expect(rolloutOf({ leading })).toMatchObject({
      stage: 1,
      observedMs: observedMs + MINUTE_MS,
      hold: undefined,
    });
  });

  it('back, from one leader to the next, does not stop the looks', async () => {
    const scene = await rolling();
    await toCanary(scene);
    const { observedMs } = rolloutOf(scene);
    await scene.room.world.settle(scene.leading.stage.close());
    const clock = settable(scene.room.world.clock);
    clock.skewMs = -3_600_000;
    const leading = await scene.next({ deps: { clock } });
    await scene.room.world.clock.advanceBy(2 * MINUTE_MS);
    expect(rolloutOf({ leading }).observedMs).toBeGreaterThan(observedMs + MINUTE_MS);
  });

  it('back, of the broker, stops no look: the log goes on from the latest time that it has', async () => {
    const scene = await rolling();
    await toCanary(scene);
    const { observedMs, lastLookMs } = rolloutOf(scene);
    await scene.room.world.settle(scene.leading.stage.close());
    const bus = scene.room.world.connect();
    const read = bus.read.bind(bus);
    bus.read = (options, take) =>
      read(options, (records) =>
        take(records.map((record) => ({ ...record, timestampMs: record.timestampMs - HOUR_MS }))),
      );
    const leading = await scene.next({ bus });
    await scene.room.world.clock.advanceBy(2 * MINUTE_MS);
    const now = rolloutOf({ leading });
    expect(now.observedMs).toBeGreaterThan(observedMs + MINUTE_MS);
    expect(now.lastLookMs).toBeGreaterThan(lastLookMs);
  });

  it.each([3, -3])(
    'by %i h, from one leader to the next, ends no hold of a minute, and none that is due later',
    async (jumpHours) => {
      const scene = await rolling({ autoPromote: false });
      const { clock } = scene.room.world;
      await scene.room.send(command('HOLD', '{"reason":"lunch"}'));
      await clock.advanceBy(MINUTE_MS);
      await scene.room.world.settle(scene.leading.stage.close());
      const skewed = settable(clock);
      skewed.skewMs = jumpHours * HOUR_MS;
      const second = await scene.next({ deps: { clock: skewed } });
      await clock.advanceBy(MINUTE_MS);
      expect(rolloutOf({ leading: second }).hold).toBeDefined();
      await scene.room.world.settle(second.stage.close());
      const third = await scene.next();
      await clock.advanceBy(HOUR_MS);
      expect(rolloutOf({ leading: third }).hold).toBeDefined();
      // Two hours of it are too long, whoever counts them.
      await clock.advanceBy(HOUR_MS);
      expect(decisions(scene.room).at(-1)).toMatch(/^rollout-rolled-back/);
    },
  );
});

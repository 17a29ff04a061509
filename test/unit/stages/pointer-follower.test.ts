import { expect, it } from 'vitest';
import { memoryControlServer } from '../../../src/adapters/memory/control-store.ts';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import { virtualClock } from '../../../src/simulation/virtual-clock.ts';
import { PointerFollower } from '../../../src/stages/pointer-follower.ts';

it('goes on reading where it fails to say that a pointer cannot be read', async () => {
  const clock = virtualClock();
  const told: unknown[] = [];
  const follower = new PointerFollower({
    clock,
    store: memoryControlServer({ clock }).connect(),
    random: seededRandom(1).stream('poll'),
    telemetry: silentTelemetry(),
    scope: 'policy/test',
    take: async () => {
      throw new Error('no pointer');
    },
    unreadable: async (error) => {
      told.push(error);
      throw new Error('nor a report');
    },
  });
  const started = follower.start();
  await clock.advanceBy(10);
  await started;
  await clock.advanceBy(5_000);
  expect(told.length).toBeGreaterThan(3);
  await follower.close();
});

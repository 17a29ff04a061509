import { describe, expect, it } from 'vitest';
import { memoryLastKnownGood } from '../../../../src/adapters/memory/last-known-good.ts';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import { topicNames } from '../../../../src/contracts/topics.ts';
import type { ControlStore } from '../../../../src/ports/control-store.ts';
import type { VirtualClock } from '../../../../src/simulation/virtual-clock.ts';
import type { StageDeps } from '../../../../src/stages/stage.ts';
import { claimAckPartition } from '../../../../src/wiring/ack-partition.ts';
import { changed, newWorld, start } from './policy-source.fixture.ts';

const ROUTERS = 100;

/** A store that notes when each command was sent. */
function counting(store: ControlStore, clock: VirtualClock, commandsMs: number[]): ControlStore {
  const count = <T>(answer: T): T => {
    commandsMs.push(clock.monotonicMs());
    return answer;
  };
  return changed(store, {
    readPointer: (scope) => count(store.readPointer(scope)),
    readDocument: (digest) => count(store.readDocument(digest)),
    watch: (scope, onHint) => count(store.watch(scope, onHint)),
    report: (scope, member, text, ttlMs) => count(store.report(scope, member, text, ttlMs)),
    acquireLease: async (names, holder, ttlMs) => {
      const lease = await count(store.acquireLease(names, holder, ttlMs));
      return lease && { ...lease, renew: () => count(lease.renew()) };
    },
  });
}

/** What a router needs to claim its partition of the acks, of which there are fewer than routers. */
function claiming(clock: VirtualClock): StageDeps {
  const bus = { partitionCount: async () => ROUTERS / 2 };
  return { bus, clock, topics: topicNames(), telemetry: silentTelemetry() } as unknown as StageDeps;
}

/** Most commands in any `windowMs`. */
function busiest(commandsMs: readonly number[], windowMs: number): number {
  let most = 0;
  let first = 0;
  for (const [last, atMs] of commandsMs.entries()) {
    while ((commandsMs[first] ?? 0) <= atMs - windowMs) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** Commands of a hundred routers that start at the same moment: in their first seconds, and when they have run for a while. */
async function startTogether(seed: number, isRestart: boolean, options: { withLeases?: boolean } = {}) {
  const world = newWorld();
  const kept = memoryLastKnownGood();
  const first = start({ world, lastKnownGood: kept });
  await first.publish(1, 'a');
  await first.started();
  await first.publish(2, 'b', { canary: { text: 'c' } });
  await world.clock.advanceBy(1_000);
  await first.source.close();
  const commandsMs: number[] = [];
  const routers = Array.from({ length: ROUTERS }, (_, router) =>
    start({
      world: { ...world, seed: seed * ROUTERS + router },
      wrap: (store) => counting(store, world.clock, commandsMs),
      ...(isRestart ? { lastKnownGood: kept } : {}),
    }),
  );
  const claims = routers.map(async (_router, index) => {
    if (options.withLeases !== true) return;
    const store = counting(world.server.connect(), world.clock, commandsMs);
    await claimAckPartition(claiming(world.clock), store, `router-${index}`);
  });
  await Promise.all([...claims, ...routers.map(({ source }) => source.start()), world.clock.advanceBy(500)]);
  await world.clock.advanceBy(9_500);
  const starting = commandsMs.splice(0);
  await world.clock.advanceBy(60_000);
  expect(routers.map(({ inForce }) => inForce())).toEqual(routers.map(() => 'digest of b'));
  return { starting, normal: commandsMs };
}

describe('a hundred routers that restart together', () => {
  it.each([
    { windowMs: 1_000, seed: 1 },
    { windowMs: 1_000, seed: 2 },
    { windowMs: 100, seed: 3 },
    { windowMs: 100, seed: 4 },
  ])(
    'ask the store at most twice as often as ever, in any $windowMs ms (seed $seed)',
    async ({ windowMs, seed }) => {
      const { starting, normal } = await startTogether(seed, true);
      expect(starting.length).toBeGreaterThan(2 * ROUTERS);
      expect(busiest(starting, windowMs)).toBeLessThanOrEqual(2 * busiest(normal, windowMs));
    },
  );

  it('without anything kept need the documents too: at most twice as often as ever in any five seconds', async () => {
    const { starting, normal } = await startTogether(5, false);
    expect(busiest(starting, 5_000)).toBeLessThanOrEqual(2 * busiest(normal, 5_000));
  });

  it('do not ask in step for long', async () => {
    const { normal } = await startTogether(6, false);
    expect(busiest(normal, 100)).toBeLessThan(ROUTERS / 2);
  });
});

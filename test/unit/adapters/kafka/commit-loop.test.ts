import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { PartitionOffset, Session } from '../../../../src/adapters/kafka/client.ts';
import { CommitLoop } from '../../../../src/adapters/kafka/commit-loop.ts';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** Longer than any number of the loop's timers. */
const WHILE_MS = 10_000;

/** A broker that answers a commit when the test says so, and partitions that the test moves on. */
function setUp() {
  const partitions = [0, 1].map((partition) => ({
    topic: 't',
    partition,
    queue: { committable: 0 },
    committed: 0,
  }));
  const asked: (PromiseWithResolvers<void> & { offsets: Record<number, number> })[] = [];
  const commit = (offsets: readonly PartitionOffset[]): Promise<void> => {
    const answer = Promise.withResolvers<void>();
    const entries = offsets.map(({ partition, offset }) => [partition, offset]);
    asked.push({ ...answer, offsets: Object.fromEntries(entries) as Record<number, number> });
    return answer.promise;
  };
  const session = { commit } as Session;
  const loop = new CommitLoop(
    () => session,
    () => partitions,
    silentTelemetry().logger,
  );
  const acknowledgeTo = (partition: number, offset: number): void => {
    const owned = partitions[partition];
    if (owned !== undefined) owned.queue.committable = offset;
    loop.soon();
  };
  return { loop, asked, acknowledgeTo, offsets: () => asked.map(({ offsets }) => offsets) };
}

it('commits what several partitions gained with one request', async () => {
  const { acknowledgeTo, offsets } = setUp();
  acknowledgeTo(0, 3);
  acknowledgeTo(1, 5);
  acknowledgeTo(0, 4);
  await vi.advanceTimersByTimeAsync(WHILE_MS);
  expect(offsets()).toEqual([{ 0: 4, 1: 5 }]);
});

it('commits what was acknowledged during a commit that takes long, though nothing more is acknowledged', async () => {
  const { asked, acknowledgeTo, offsets } = setUp();
  acknowledgeTo(0, 1);
  await vi.advanceTimersByTimeAsync(WHILE_MS);
  acknowledgeTo(0, 2);
  await vi.advanceTimersByTimeAsync(WHILE_MS);
  acknowledgeTo(1, 7);
  await vi.advanceTimersByTimeAsync(WHILE_MS);
  expect(offsets()).toEqual([{ 0: 1 }]);
  asked[0]?.resolve();
  await vi.advanceTimersByTimeAsync(WHILE_MS);
  expect(offsets()).toEqual([{ 0: 1 }, { 0: 2, 1: 7 }]);
  asked[1]?.resolve();
  await vi.advanceTimersByTimeAsync(WHILE_MS);
  expect(offsets()).toHaveLength(2);
});

it('tries a commit that was refused again until it is taken, though nothing more is acknowledged', async () => {
  const { asked, acknowledgeTo, offsets } = setUp();
  acknowledgeTo(0, 1);
  for (let refused = 0; refused < 5; refused++) {
    await vi.advanceTimersByTimeAsync(WHILE_MS);
    asked[refused]?.reject(new Error('the coordinator is gone'));
  }
  await vi.advanceTimersByTimeAsync(WHILE_MS);
  asked[5]?.resolve();
  await vi.advanceTimersByTimeAsync(WHILE_MS);
  expect(offsets()).toEqual(new Array(6).fill({ 0: 1 }));
});

it('before partitions are let go, commits what a commit that is under way does not know', async () => {
  const { loop, asked, acknowledgeTo, offsets } = setUp();
  acknowledgeTo(0, 1);
  await vi.advanceTimersByTimeAsync(WHILE_MS);
  acknowledgeTo(0, 2);
  const done = loop.now();
  asked[0]?.resolve();
  await vi.advanceTimersByTimeAsync(0);
  asked[1]?.resolve();
  await done;
  expect(offsets()).toEqual([{ 0: 1 }, { 0: 2 }]);
});

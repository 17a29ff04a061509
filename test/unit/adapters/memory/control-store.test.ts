import { describe, expect, it } from 'vitest';
import {
  type MemoryControlServer,
  memoryControlServer,
} from '../../../../src/adapters/memory/control-store.ts';
import type { ControlStore, PolicyPointer } from '../../../../src/ports/control-store.ts';
import { type VirtualClock, virtualClock } from '../../../../src/simulation/virtual-clock.ts';

const pointer = (epoch: number): PolicyPointer => ({
  epoch,
  term: 1,
  stable: { digest: 'sha256:00', name: 'policy', version: epoch },
  canary: undefined,
});

class StoreWorld {
  readonly clock: VirtualClock = virtualClock();
  readonly server: MemoryControlServer = memoryControlServer({ clock: this.clock });
  readonly store: ControlStore = this.server.connect();
  hints = 0;

  async settle<T>(promise: Promise<T>): Promise<T> {
    const [settled] = await Promise.all([Promise.allSettled([promise]), this.clock.advanceBy(1)]);
    const [result] = settled;
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  }

  async watch(): Promise<void> {
    await this.settle(this.store.watch('prod', () => this.hints++));
  }

  write(epoch: number): Promise<unknown> {
    return this.settle(this.server.connect().writePointer('prod', pointer(epoch)));
  }

  async epoch(): Promise<number | undefined> {
    return (await this.settle(this.store.readPointer('prod')))?.epoch;
  }
}

describe('memoryControlServer', () => {
  it('lets leases and reports lapse by the clock that it was given', async () => {
    const { clock, server, store } = new StoreWorld();
    const other = server.connect();
    const acquiring = Promise.all([
      store.acquireLease(['l'], 'a', 1_000),
      store.report('prod', 'router', 'ACK', 1_000),
      store.report('prod', 'lasting', 'ACK', 5_000),
    ]);
    await clock.advanceBy(999);
    await acquiring;
    const refused = other.acquireLease(['l'], 'b', 1_000);
    await clock.advanceBy(0);
    expect(await refused).toBeUndefined();
    await clock.advanceBy(1);
    const granted = other.acquireLease(['l'], 'b', 1_000);
    const reports = store.readReports('prod');
    await clock.advanceBy(0);
    expect(await granted).toMatchObject({ holder: 'b' });
    expect(await reports).toEqual(new Map([['lasting', 'ACK']]));
  });

  it('answers and hints nobody while it is stopped, and hints everybody when it is back', async () => {
    const world = new StoreWorld();
    await world.write(1);
    await world.watch();
    expect(world.hints).toBe(1);
    world.server.stop();
    await expect(world.epoch()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    await expect(world.write(2)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(world.hints).toBe(1);
    world.server.start();
    expect(await world.epoch()).toBe(1);
    expect(world.hints).toBe(2);
  });

  it('can lose hints', async () => {
    const world = new StoreWorld();
    await world.watch();
    world.server.loseHints(true);
    await world.write(1);
    expect(world.hints).toBe(1);
    world.server.loseHints(false);
    await world.write(2);
    expect(world.hints).toBe(2);
  });

  it('can be emptied, and put back to what it was', async () => {
    const world = new StoreWorld();
    await world.write(1);
    const restore = world.server.backup();
    await world.write(7);
    world.server.empty();
    expect(await world.epoch()).toBeUndefined();
    restore();
    expect(await world.epoch()).toBe(1);
    await world.write(8);
    restore();
    expect(await world.epoch()).toBe(1);
  });

  it('is not changed by what callers do with their copies', async () => {
    const world = new StoreWorld();
    const written = pointer(1);
    await world.settle(world.store.writePointer('prod', written));
    written.epoch = 5;
    const read = await world.settle(world.store.readPointer('prod'));
    if (read !== undefined) read.epoch = 6;
    expect(await world.epoch()).toBe(1);
    const bytes = new Uint8Array([1]);
    await world.settle(world.store.putDocument('sha256:1', bytes));
    bytes[0] = 2;
    expect(await world.settle(world.store.readDocument('sha256:1'))).toEqual(new Uint8Array([1]));
  });
});

import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { changed, FOLLOWED_MS, LEASE_MS, newWorld, start } from './policy-source.fixture.ts';

/** A router that has looked at the store, and a canary published after that. */
async function withCanary(fields: { leaseMs?: number; mode?: 'shadow' | 'canary' } = {}) {
  const world = start();
  await world.publish(1, 'a');
  await world.started();
  const pointer = await world.publish(2, 'a', { canary: { text: 'c', ...fields } });
  await world.clock.advanceBy(10);
  return { ...world, pointer };
}

describe('a canary', () => {
  it('is obeyed beside the stable policy, with everything that its pointer says but the version, which is the document’s', async () => {
    const { applied, canaries } = await withCanary();
    expect(applied.at(-1)).toMatchObject({ epoch: 2, ref: { digest: 'digest of a' } });
    expect(canaries.at(-1)).toMatchObject({
      policy: { epoch: 2, ref: { digest: 'digest of c', name: 'test', version: 1 }, source: 'store' },
      mode: 'canary',
      percent: 5,
      salt: 'salt',
      unit: 'bucketKey',
    });
  });

  it('that names what the fleet cannot run is refused until it can, and the stable policy decides', async () => {
    let why: string | undefined = 'no live worker of cpu can run ranker@4';
    const world = start({ unservable: () => why });
    await world.publish(1, 'a');
    await world.started();
    await world.publish(2, 'a', { canary: { text: 'c' } });
    await world.clock.advanceBy(10);
    expect(world.inForce()).toBe('digest of a');
    expect(await world.report()).toEqual({ status: 'refused', epoch: 2, what: 'canary', reason: why });
    why = undefined;
    await world.clock.advanceBy(FOLLOWED_MS);
    expect(world.inForce()).toBe('digest of a, canary 5 % digest of c');
    expect(await world.report()).toEqual({ status: 'applied', epoch: 2 });
  });

  it('swaps nothing while it is renewed', async () => {
    const { clock, applied, inForce, pointer, beat } = await withCanary();
    const swaps = applied.length;
    for (let beats = 1; beats <= 30; beats += 1) {
      await clock.advanceBy(10_000);
      await beat(pointer, beats);
    }
    expect(applied).toHaveLength(swaps);
    expect(inForce()).toBe('digest of a, canary 5 % digest of c');
  });

  it.each(['aborted', 'promoted'] as const)('ends at once when it is %s', async (how) => {
    const { clock, inForce, compiled, publish } = await withCanary();
    const texts = compiled.length;
    await publish(3, how === 'aborted' ? 'a' : 'c');
    await clock.advanceBy(5);
    expect(inForce()).toBe(how === 'aborted' ? 'digest of a' : 'digest of c');
    // A swap back, or to live, costs no compilation.
    expect(compiled).toHaveLength(texts);
  });

  it('widens without being compiled again', async () => {
    const { clock, inForce, compiled, publish } = await withCanary();
    await publish(3, 'a', { canary: { text: 'c', percent: 50 } });
    await clock.advanceBy(10);
    expect(inForce()).toBe('digest of a, canary 50 % digest of c');
    expect(compiled).toEqual(['a', 'c']);
  });
});

describe('the lease of a canary', () => {
  it('lapses on the minute where the controller is dead, while the store answers', async () => {
    const { clock, telemetry, inForce } = await withCanary();
    await clock.advanceBy(LEASE_MS - 30);
    expect(inForce()).toBe('digest of a, canary 5 % digest of c');
    await clock.advanceBy(30);
    expect(inForce()).toBe('digest of a');
    expect(
      telemetry.logs.filter(({ message }) => message.startsWith('the lease of the canary lapsed')),
    ).toHaveLength(1);
  });

  it('lapses where the store is away, though the controller lives', async () => {
    const { clock, server, inForce } = await withCanary();
    server.stop();
    await clock.advanceBy(LEASE_MS);
    expect(inForce()).toBe('digest of a');
  });

  it('lapses where the store was emptied', async () => {
    const { clock, server, inForce } = await withCanary();
    server.empty();
    await clock.advanceBy(LEASE_MS - 30);
    expect(inForce()).toBe('digest of a, canary 5 % digest of c');
    await clock.advanceBy(30);
    expect(inForce()).toBe('digest of a');
  });

  it('is not renewed by a pointer that contradicts what is in force, however often that beats', async () => {
    const { clock, server, inForce, publish, beat } = await withCanary();
    server.empty();
    const other = await publish(2, 'forged', { canary: { text: 'c', beat: 50 } });
    for (let beats = 1; beats <= 7; beats += 1) {
      await clock.advanceBy(10_000);
      await beat(other, beats);
    }
    expect(inForce()).toBe('digest of a');
  });

  it.each([
    ['a share', { text: 'c', percent: 50 }],
    ['a policy', { text: 'd' }],
    ['a salt', { text: 'c', salt: 'other' }],
    ['a lease', { text: 'c', leaseMs: 9 * LEASE_MS }],
    ['none', undefined],
  ])('is not renewed by one of the same epoch with another canary: %s', async (_what, canary) => {
    const { clock, server, inForce, publish, report } = await withCanary();
    server.empty();
    await publish(2, 'a', canary && { canary: { beat: 50, ...canary } });
    await clock.advanceBy(FOLLOWED_MS);
    expect(inForce()).toBe('digest of a, canary 5 % digest of c');
    expect(await report()).toMatchObject({ status: 'refused', what: 'pointer' });
    await clock.advanceBy(LEASE_MS);
    expect(inForce()).toBe('digest of a');
  });

  it('is counted from when the store was asked, not from when it answered', async () => {
    const world = newWorld();
    const lateMs = 400;
    const { clock, inForce, publish, source } = start({
      world,
      wrap: (store) =>
        changed(store, {
          readPointer: async (scope) => {
            const pointer = await store.readPointer(scope);
            await new Promise<void>((resolve) => world.clock.after(lateMs, resolve));
            return pointer;
          },
        }),
    });
    await publish(1, 'a');
    await Promise.all([source.start(), clock.advanceBy(500)]);
    await publish(2, 'a', { canary: { text: 'c', leaseMs: 5_000 } });
    await clock.advanceBy(1_999);
    expect(inForce()).toBe('digest of a, canary 5 % digest of c');
    await clock.advanceBy(3_010);
    expect(inForce()).toBe('digest of a');
  });

  it('begins again with the next beat', async () => {
    const { clock, inForce, pointer, beat } = await withCanary();
    await clock.advanceBy(LEASE_MS + 10_000);
    expect(inForce()).toBe('digest of a');
    await beat(pointer, 1);
    await clock.advanceBy(10);
    expect(inForce()).toBe('digest of a, canary 5 % digest of c');
  });

  it('does not begin with what a router finds at its start: that may be of a dead controller', async () => {
    const { clock, inForce, publish, started, beat } = start();
    const pointer = await publish(7, 'a', { canary: { text: 'c' } });
    await started();
    await clock.advanceBy(30_000);
    expect(inForce()).toBe('digest of a');
    await beat(pointer, 1);
    await clock.advanceBy(10);
    expect(inForce()).toBe('digest of a, canary 5 % digest of c');
  });

  it('holds for a shadow as well', async () => {
    const { clock, inForce } = await withCanary({ mode: 'shadow', leaseMs: 5_000 });
    expect(inForce()).toBe('digest of a, shadow 5 % digest of c');
    await clock.advanceBy(5_000);
    expect(inForce()).toBe('digest of a');
  });

  it('ends with the source: nothing stays scheduled', async () => {
    const { clock, source, settle } = await withCanary();
    await settle(source.close());
    expect(clock.pending).toBe(0);
  });
});

describe('a canary that cannot be used', () => {
  it('does not hold up the stable policy, and is reported for as long as it is named', async () => {
    const { clock, telemetry, inForce, compiled, publish, started, report } = start();
    await publish(1, 'a');
    await started();
    await publish(2, 'b', { canary: { text: 'bad canary' } });
    await clock.advanceBy(10);
    expect(inForce()).toBe('digest of b');
    const refusal = { epoch: 2, status: 'refused', what: 'canary', reason: 'bad canary has no leaf' };
    expect(await report()).toEqual(refusal);
    await clock.advanceBy(30_000);
    expect(await report()).toEqual(refusal);
    expect(telemetry.logs.filter(({ level }) => level === 'error')).toHaveLength(1);
    expect(compiled).toEqual(['a', 'b', 'bad canary']);
  });

  it('is obeyed once its text is there', async () => {
    const { clock, writer, inForce, settle, publish, started } = start();
    await publish(1, 'a');
    await started();
    await publish(2, 'a', { withoutText: true, canary: { text: 'c' } });
    await clock.advanceBy(FOLLOWED_MS);
    expect(inForce()).toBe('digest of a');
    await settle(writer.putDocument('digest of c', Buffer.from('c')));
    await clock.advanceBy(FOLLOWED_MS);
    expect(inForce()).toBe('digest of a, canary 5 % digest of c');
  });

  it('does not hold up the stable policy where its text cannot be read', async () => {
    const { clock, inForce, publish, started, report } = start({
      wrap: (store) =>
        changed(store, {
          readDocument: async (digest) => {
            if (digest === 'digest of c') throw new MillraceError('STORE_UNAVAILABLE', 'it does not answer');
            return store.readDocument(digest);
          },
        }),
    });
    await started();
    await publish(2, 'b', { canary: { text: 'c' } });
    await clock.advanceBy(10);
    expect(inForce()).toBe('digest of b');
    expect(await report()).toMatchObject({ status: 'refused', what: 'canary', reason: 'it does not answer' });
  });

  it('does not hold up the stable policy while its text is on its way', async () => {
    const held: (() => void)[] = [];
    const { clock, inForce, publish, started } = start({
      wrap: (store) =>
        changed(store, {
          readDocument: async (digest) => {
            if (digest === 'digest of c') await new Promise<void>((resolve) => held.push(resolve));
            return store.readDocument(digest);
          },
        }),
    });
    await publish(1, 'a');
    await started();
    await publish(2, 'b', { canary: { text: 'c' } });
    await clock.advanceBy(10);
    expect(inForce()).toBe('digest of b');
    for (const release of held) release();
    await clock.advanceBy(10);
    expect(inForce()).toBe('digest of b, canary 5 % digest of c');
  });

  it('is given up where the next pointer’s stable policy is refused: that one may have ended it', async () => {
    const { clock, inForce, publish, report } = await withCanary();
    await publish(3, 'bad', { canary: { text: 'another' } });
    await clock.advanceBy(10);
    expect(inForce()).toBe('digest of a');
    expect(await report()).toMatchObject({ epoch: 3, status: 'refused', what: 'stable' });
  });
});

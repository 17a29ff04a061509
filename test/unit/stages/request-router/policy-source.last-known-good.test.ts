import { describe, expect, it } from 'vitest';
import { memoryLastKnownGood } from '../../../../src/adapters/memory/last-known-good.ts';
import { MillraceError } from '../../../../src/core/errors.ts';
import type { KnownGood, LastKnownGood } from '../../../../src/ports/last-known-good.ts';
import { changed, epochs, FOLLOWED_MS, newWorld, SCOPE, start } from './policy-source.fixture.ts';

const MINUTE_MS = 60_000;

function known(epoch: number, text: string, digest = `digest of ${text}`): KnownGood {
  return {
    pointer: { epoch, term: 1, stable: { digest, name: 'test', version: epoch }, canary: undefined },
    documents: new Map([[digest, Buffer.from(text)]]),
    envelopes: new Map(),
    revokedKeys: [],
  };
}

async function keeping(...goods: readonly KnownGood[]): Promise<LastKnownGood> {
  const kept = memoryLastKnownGood();
  for (const good of goods) await kept.save(SCOPE, good);
  return kept;
}

describe('a router that starts while the store is away', () => {
  it('decides by what it last ran, before its start is over', async () => {
    const { clock, server, applied, source } = start({ lastKnownGood: await keeping(known(7, 'a')) });
    server.stop();
    const beganMs = clock.monotonicMs();
    await source.start();
    expect(clock.monotonicMs()).toBe(beganMs);
    expect(applied).toMatchObject([{ epoch: 7, source: 'last-known-good', ref: { digest: 'digest of a' } }]);
  });

  it.each([
    ['the newest is corrupt', [known(1, 'a'), known(2, 'forged', 'digest of b')], [1]],
    ['the newest lacks its document', [known(1, 'a'), { ...known(2, 'b'), documents: new Map() }], [1]],
    ['the newest does not compile any more', [known(1, 'a'), known(2, 'bad')], [1]],
    ['both are corrupt', [known(1, 'forged', 'digest of a'), known(2, 'bad')], []],
    ['nothing was kept', [], []],
  ])('goes back as far as it must: %s', async (_name, goods, expected) => {
    const { clock, server, applied, source } = start({ lastKnownGood: await keeping(...goods) });
    server.stop();
    const starting = source.start();
    await clock.advanceBy(1_000);
    await starting;
    expect(epochs(applied)).toEqual(expected);
  });

  it('takes it for what the store says, once that says the same', async () => {
    const { clock, server, applied, publish, source } = start({
      lastKnownGood: await keeping(known(7, 'a')),
    });
    await publish(7, 'a');
    server.stop();
    await source.start();
    server.start();
    await clock.advanceBy(FOLLOWED_MS);
    expect(applied.map((policy) => policy.source)).toEqual(['last-known-good', 'store']);
  });

  it('follows the store once that answers, and refuses an older epoch from it', async () => {
    const { clock, server, applied, publish, source } = start({
      lastKnownGood: await keeping(known(7, 'a')),
    });
    await publish(6, 'older');
    server.stop();
    await source.start();
    server.start();
    await clock.advanceBy(FOLLOWED_MS);
    expect(epochs(applied)).toEqual([7]);
    await publish(8, 'b');
    await clock.advanceBy(FOLLOWED_MS);
    expect(epochs(applied)).toEqual([7, 8]);
  });
});

describe('what is kept', () => {
  it('starts the next life (open-policy-agent/opa#3472: a persisted signed bundle fails on restart)', async () => {
    const world = newWorld();
    const lastKnownGood = memoryLastKnownGood();
    const first = start({ world, lastKnownGood });
    await first.publish(1, 'a');
    await first.started();
    await first.publish(2, 'b', { canary: { text: 'c' } });
    await world.clock.advanceBy(10);
    await first.source.close();
    world.server.stop();
    const second = start({ world, lastKnownGood });
    await second.source.start();
    expect(second.inForce()).toBe('digest of b');
    expect(second.compiled).toEqual(['b', 'c']);
  });

  it('lets a canary wait for a beat, and needs no document from the store for it', async () => {
    const world = newWorld();
    const lastKnownGood = memoryLastKnownGood();
    const first = start({ world, lastKnownGood });
    await first.started();
    const pointer = await first.publish(2, 'b', { canary: { text: 'c' } });
    await world.clock.advanceBy(10);
    await first.source.close();
    const second = start({
      world,
      lastKnownGood,
      wrap: (store) => changed(store, { readDocument: async () => undefined }),
    });
    await second.started();
    await world.clock.advanceBy(FOLLOWED_MS);
    expect(second.inForce()).toBe('digest of b');
    await second.beat(pointer, 1);
    await world.clock.advanceBy(10);
    expect(second.inForce()).toBe('digest of b, canary 5 % digest of c');
  });

  it.each([
    ['a policy that was refused', 'bad', undefined, [1]],
    ['a policy without its text', undefined, undefined, [1]],
    ['a policy whose canary was refused: that without its canary', 'b', 'bad canary', [2, 1]],
    ['a policy with its canary', 'b', 'c', [2, 1]],
  ] as const)('is only what passed every check: %s', async (_name, text, canary, expected) => {
    const lastKnownGood = memoryLastKnownGood();
    const { clock, publish, started } = start({ lastKnownGood });
    await publish(1, 'a');
    await started();
    await publish(2, text ?? 'b', {
      withoutText: text === undefined,
      ...(canary === undefined ? {} : { canary: { text: canary } }),
    });
    await clock.advanceBy(FOLLOWED_MS);
    const kept = await lastKnownGood.load(SCOPE);
    expect(kept.map(({ pointer }) => pointer.epoch)).toEqual(expected);
    expect(kept[0]?.pointer.canary?.policy.digest).toBe(canary === 'c' ? 'digest of c' : undefined);
  });

  it.each([
    ['is not there', async () => undefined],
    [
      'cannot be read',
      async () => {
        throw new MillraceError('STORE_UNAVAILABLE', 'it does not answer');
      },
    ],
  ])('waits for the text of a canary that %s, and then has it', async (_what, readDocument) => {
    const lastKnownGood = memoryLastKnownGood();
    let isThere = false;
    const { clock, publish, started } = start({
      lastKnownGood,
      wrap: (store) =>
        changed(store, {
          readDocument: async (digest) =>
            isThere || digest !== 'digest of c' ? store.readDocument(digest) : readDocument(),
        }),
    });
    await publish(1, 'a');
    await started();
    await publish(2, 'a', { canary: { text: 'c' } });
    await clock.advanceBy(FOLLOWED_MS);
    const epochsKept = async (): Promise<number[]> =>
      (await lastKnownGood.load(SCOPE)).map(({ pointer }) => pointer.epoch);
    expect(await epochsKept()).toEqual([1]);
    isThere = true;
    await clock.advanceBy(FOLLOWED_MS);
    expect(await epochsKept()).toEqual([2, 1]);
    expect((await lastKnownGood.load(SCOPE))[0]?.documents.has('digest of c')).toBe(true);
  });

  it('is written once for each epoch, whatever beats and polls come', async () => {
    const saved: number[] = [];
    const lastKnownGood: LastKnownGood = {
      load: async () => [],
      save: async (_scope, { pointer }) => void saved.push(pointer.epoch),
    };
    const { clock, publish, beat, started } = start({ lastKnownGood });
    await publish(1, 'a');
    await started();
    await clock.advanceBy(10_000);
    const pointer = await publish(2, 'a', { canary: { text: 'c' } });
    for (let beats = 1; beats < 10; beats += 1) {
      await clock.advanceBy(3_000);
      await beat(pointer, beats);
    }
    expect(saved).toEqual([1, 2]);
  });

  it('is not written again by the life that began with it', async () => {
    const kept = await keeping(known(7, 'a'));
    const saved: number[] = [];
    const lastKnownGood: LastKnownGood = {
      load: (scope) => kept.load(scope),
      save: async (_scope, { pointer }) => void saved.push(pointer.epoch),
    };
    const { clock, publish, started } = start({ lastKnownGood });
    await publish(7, 'a');
    await started();
    await clock.advanceBy(10_000);
    await publish(8, 'b');
    await clock.advanceBy(10_000);
    expect(saved).toEqual([8]);
  });

  it('is written to its end before the router ends', async () => {
    let finish = (): void => undefined;
    const lastKnownGood: LastKnownGood = {
      load: async () => [],
      save: () => new Promise<void>((resolve) => (finish = resolve)),
    };
    const { clock, source, publish, started } = start({ lastKnownGood });
    await publish(1, 'a');
    await started();
    let isClosed = false;
    const closing = source.close().then(() => {
      isClosed = true;
    });
    await clock.advanceBy(1_000);
    expect(isClosed).toBe(false);
    finish();
    await closing;
  });

  it('does not hold up anything where it cannot be written', async () => {
    const lastKnownGood: LastKnownGood = {
      load: async () => [],
      save: async () => {
        throw new Error('no space left on device');
      },
    };
    const { clock, telemetry, applied, publish, started, report } = start({ lastKnownGood });
    await started();
    await publish(1, 'a');
    await clock.advanceBy(10);
    expect(epochs(applied)).toEqual([1]);
    expect(await report()).toEqual({ epoch: 1, status: 'applied' });
    expect(telemetry.logs.map(({ message }) => message)).toContain(
      'the policy in force could not be kept on disk; trying again',
    );
  });

  it.each([
    { what: 'the same epoch', later: [], expected: [2, 1] },
    { what: 'a later epoch, which came meanwhile', later: [3], expected: [3, 1] },
  ])('that could not be written is tried again: $what', async ({ later, expected }) => {
    const kept = memoryLastKnownGood();
    let isFull = false;
    const lastKnownGood: LastKnownGood = {
      load: (scope) => kept.load(scope),
      save: async (scope, good) => {
        if (isFull) throw new Error('no space left on device');
        await kept.save(scope, good);
      },
    };
    const { clock, telemetry, publish, started } = start({ lastKnownGood });
    await publish(1, 'a');
    await started();
    await clock.advanceBy(FOLLOWED_MS);
    isFull = true;
    await publish(2, 'b');
    await clock.advanceBy(MINUTE_MS);
    for (const epoch of later) await publish(epoch, 'c');
    await clock.advanceBy(FOLLOWED_MS);
    isFull = false;
    await clock.advanceBy(MINUTE_MS);
    expect((await kept.load(SCOPE)).map(({ pointer }) => pointer.epoch)).toEqual(expected);
    const warnings = telemetry.logs.filter(({ level }) => level === 'warn');
    expect(warnings.length).toBeGreaterThan(1);
    expect(warnings.length).toBeLessThan(12);
  });

  it('that could not be written holds up no router that ends', async () => {
    let tries = 0;
    const lastKnownGood: LastKnownGood = {
      load: async () => [],
      save: async () => {
        tries += 1;
        throw new Error('no space left on device');
      },
    };
    const { clock, source, publish, started, settle } = start({ lastKnownGood });
    await publish(1, 'a');
    await started();
    await settle(source.close());
    await clock.advanceBy(MINUTE_MS);
    expect(tries).toBe(1);
  });
});

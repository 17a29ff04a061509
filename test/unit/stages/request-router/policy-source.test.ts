import { describe, expect, it } from 'vitest';
import type { SilentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import { checkDocumentSize } from '../../../../src/core/control/document-size.ts';
import { MillraceError } from '../../../../src/core/errors.ts';
import type { ControlStore } from '../../../../src/ports/control-store.ts';
import type { KnownGood } from '../../../../src/ports/last-known-good.ts';
import { changed, epochs, FOLLOWED_MS, SlowStore, start } from './policy-source.fixture.ts';

const alarms = (telemetry: SilentTelemetry): unknown[] =>
  telemetry.logs.filter(({ level }) => level === 'error').map(({ fields }) => fields['reason']);

describe('a pointer', () => {
  it('that is there at the start is applied before the start is over, by the name and version that its document has', async () => {
    const { applied, publish, started, report } = start();
    await publish(3, 'a');
    await started();
    expect(applied).toMatchObject([
      { epoch: 3, source: 'store', ref: { digest: 'digest of a', name: 'test', version: 1 } },
    ]);
    expect(await report()).toEqual({ epoch: 3, status: 'applied' });
  });

  it('that rises is applied by its hint, at once', async () => {
    const { clock, applied, publish, started } = start();
    await started();
    await publish(1, 'a');
    await clock.advanceBy(10);
    expect(epochs(applied)).toEqual([1]);
  });

  it('that rises is applied within 1.5 s where the hints get lost', async () => {
    const { clock, server, applied, publish, started } = start();
    await started();
    server.loseHints(true);
    for (let epoch = 1; epoch <= 5; epoch += 1) {
      await publish(epoch, `text ${epoch}`);
      await clock.advanceBy(FOLLOWED_MS);
    }
    expect(epochs(applied)).toEqual([1, 2, 3, 4, 5]);
  });

  it('that stays is applied once', async () => {
    const { clock, applied, publish, started } = start();
    await publish(1, 'a');
    await started();
    await clock.advanceBy(20_000);
    expect(epochs(applied)).toEqual([1]);
  });

  it('that comes back older is refused with an alarm, and a higher one is followed again', async () => {
    const { clock, server, telemetry, applied, publish, started, report } = start();
    await publish(1, 'a');
    const restore = server.backup();
    await publish(2, 'b');
    await started();
    restore();
    await clock.advanceBy(5_000);
    expect(epochs(applied)).toEqual([2]);
    const reason = 'epoch 1 is older than epoch 2, which is in force';
    expect(await report()).toEqual({ epoch: 1, status: 'refused', what: 'pointer', reason });
    expect(alarms(telemetry)).toEqual([reason]);
    await publish(3, 'c');
    await clock.advanceBy(FOLLOWED_MS);
    expect(epochs(applied)).toEqual([2, 3]);
  });
});

describe('a pointer that contradicts', () => {
  it('what is in force at its epoch is refused', async () => {
    const { clock, server, writer, applied, telemetry, settle, publish, started } = start();
    await publish(3, 'a');
    await started();
    server.empty();
    await publish(3, 'another');
    await clock.advanceBy(FOLLOWED_MS);
    expect(applied.at(-1)?.ref.digest).toBe('digest of a');
    expect(alarms(telemetry)).toEqual(['epoch 3 is in force with another policy, digest of a']);
    await settle(writer.close());
  });

  it('the form of a pointer is refused, and what ran stays', async () => {
    let isBroken = false;
    const { clock, telemetry, applied, publish, started, report } = start({
      wrap: (store) =>
        changed(store, {
          readPointer: async (scope) => {
            if (isBroken) throw new MillraceError('MALFORMED', 'The pointer cannot be read', { value: null });
            return store.readPointer(scope);
          },
        }),
    });
    await publish(1, 'a');
    await started();
    isBroken = true;
    await clock.advanceBy(5_000);
    expect(epochs(applied)).toEqual([1]);
    expect(await report()).toMatchObject({ status: 'refused', what: 'pointer' });
    expect(alarms(telemetry)).toEqual(['The pointer cannot be read (got null)']);
    isBroken = false;
    await publish(2, 'b');
    await clock.advanceBy(FOLLOWED_MS);
    expect(epochs(applied)).toEqual([1, 2]);
  });
});

describe('a report', () => {
  it('is there as long as the router is, and gone ten seconds after it', async () => {
    const { clock, source, publish, started, report } = start();
    await publish(1, 'a');
    await started();
    await clock.advanceBy(60_000);
    expect(await report()).toEqual({ epoch: 1, status: 'applied' });
    await source.close();
    await clock.advanceBy(10_000);
    expect(await report()).toBeNull();
  });
});

describe('a policy that cannot be used', () => {
  it.each([
    ['a text that does not compile', 'bad text', 'bad text has no leaf', {}],
    ['no text at all', 'b', 'the store has no document digest of b', { withoutText: true }],
  ])(
    'is refused and reported, once in the log, and what ran stays: %s',
    async (_name, text, reason, options) => {
      const { clock, telemetry, applied, publish, started, report } = start();
      await publish(1, 'a');
      await started();
      await publish(2, text, options);
      await clock.advanceBy(5_000);
      expect(epochs(applied)).toEqual([1]);
      expect(await report()).toEqual({ epoch: 2, status: 'refused', what: 'stable', reason });
      const refusals = telemetry.logs.filter(({ level }) => level === 'error');
      expect(refusals.map(({ fields }) => [fields['epoch'], fields['reason']])).toEqual([[2, reason]]);
    },
  );

  it('is refused where the store has more under the digest than it may read', async () => {
    const wrap = (store: ControlStore): ControlStore =>
      changed(store, {
        readDocument: async (digest) => {
          if (digest.endsWith(' b')) checkDocumentSize(digest, 64, 32);
          return store.readDocument(digest);
        },
      });
    const { clock, applied, publish, started, report } = start({ wrap });
    await publish(1, 'a');
    await started();
    await publish(2, 'b');
    await clock.advanceBy(5_000);
    expect(epochs(applied)).toEqual([1]);
    expect(await report()).toMatchObject({
      epoch: 2,
      status: 'refused',
      reason: expect.stringMatching(/too long/),
    });
    await publish(3, 'c');
    await clock.advanceBy(5_000);
    expect(epochs(applied)).toEqual([1, 3]);
  });

  it('is refused where the text is not that of the digest', async () => {
    const { clock, writer, applied, settle, publish, started, report } = start();
    await settle(writer.putDocument('digest of a', Buffer.from('forged')));
    await publish(1, 'a', { withoutText: true });
    await started();
    await clock.advanceBy(3_000);
    expect(applied).toEqual([]);
    expect(await report()).toMatchObject({
      status: 'refused',
      reason: 'the document does not have the digest that the pointer names',
    });
  });

  it('is applied as soon as its text is there', async () => {
    const { clock, writer, applied, settle, publish, started, report } = start();
    await publish(1, 'a', { withoutText: true });
    await started();
    await clock.advanceBy(3_000);
    expect(applied).toEqual([]);
    await settle(writer.putDocument('digest of a', Buffer.from('a')));
    await clock.advanceBy(FOLLOWED_MS);
    expect(epochs(applied)).toEqual([1]);
    expect(await report()).toEqual({ epoch: 1, status: 'applied' });
  });

  it('is passed over for the next one', async () => {
    const { clock, applied, publish, started } = start();
    await started();
    await publish(1, 'bad');
    await publish(2, 'b');
    await clock.advanceBy(FOLLOWED_MS);
    expect(epochs(applied)).toEqual([2]);
  });
});

describe('a store that is away', () => {
  it('at the start is no obstacle: the start ends, and the policy is followed once it answers', async () => {
    const { clock, server, applied, publish, started } = start();
    await publish(1, 'a');
    server.stop();
    await started();
    await clock.advanceBy(5_000);
    expect(applied).toEqual([]);
    server.start();
    await clock.advanceBy(FOLLOWED_MS);
    expect(epochs(applied)).toEqual([1]);
  });

  it('or emptied changes nothing', async () => {
    const { clock, server, applied, publish, started } = start();
    await publish(1, 'a');
    await started();
    server.stop();
    await clock.advanceBy(5_000);
    server.empty();
    server.start();
    await clock.advanceBy(5_000);
    expect(epochs(applied)).toEqual([1]);
  });
});

describe('readings', () => {
  it('are one at a time, and a storm of hints costs two', async () => {
    const slow = new SlowStore();
    const { clock, applied, publish, started } = start({ wrap: (store) => slow.wrap(store) });
    await started();
    slow.reads = 0;
    slow.isHolding = true;
    for (let epoch = 1; epoch <= 100; epoch += 1) await publish(epoch, `text ${epoch}`);
    slow.isHolding = false;
    for (const release of slow.held) release();
    await clock.advanceBy(50);
    expect(slow.mostAtOnce).toBe(1);
    expect(slow.reads).toBe(2);
    expect(applied.at(-1)?.epoch).toBe(100);
  });

  it('of a start that takes long do not cross the polls: an older policy never follows a newer one', async () => {
    const slow = new SlowStore();
    const { clock, applied, publish, source } = start({ wrap: (store) => slow.wrap(store) });
    await publish(1, 'a');
    slow.isHolding = true;
    const starting = source.start();
    await clock.advanceBy(100);
    slow.isHolding = false;
    await publish(2, 'b');
    await clock.advanceBy(3_000);
    for (const release of slow.held) release();
    await clock.advanceBy(3_000);
    await starting;
    expect(epochs(applied)).toEqual([1, 2]);
  });
});

describe('after the close', () => {
  it('nothing is read, applied or scheduled', async () => {
    const { clock, applied, publish, source, started, settle } = start();
    await started();
    await settle(source.close());
    await publish(1, 'a');
    await clock.advanceBy(5_000);
    expect(applied).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it.each([
    ['a policy', {}],
    ['a policy with a canary', { canary: { text: 'c' } }],
  ])('nothing is applied that was under way, and nothing kept: %s', async (_what, options) => {
    const slow = new SlowStore();
    const saved: number[] = [];
    const lastKnownGood = {
      load: async () => [],
      save: async (_scope: string, { pointer }: KnownGood) => void saved.push(pointer.epoch),
    };
    const { clock, applied, publish, source, started, settle } = start({
      wrap: (store) => slow.wrap(store),
      lastKnownGood,
    });
    await started();
    slow.isHolding = true;
    await publish(1, 'a', options);
    await clock.advanceBy(10);
    await settle(source.close());
    slow.isHolding = false;
    for (const release of slow.held) release();
    await clock.advanceBy(5_000);
    expect([applied, saved]).toEqual([[], []]);
  });

  it('a canary whose text was under way is not kept', async () => {
    const held: (() => void)[] = [];
    const saved: number[] = [];
    const lastKnownGood = {
      load: async () => [],
      save: async (_scope: string, { pointer }: KnownGood) => void saved.push(pointer.epoch),
    };
    const { clock, publish, source, started, settle } = start({
      wrap: (store) =>
        changed(store, {
          readDocument: async (digest) => {
            if (digest === 'digest of c') await new Promise<void>((resolve) => held.push(resolve));
            return store.readDocument(digest);
          },
        }),
      lastKnownGood,
    });
    await publish(1, 'a');
    await started();
    await publish(2, 'a', { canary: { text: 'c' } });
    await clock.advanceBy(10);
    await settle(source.close());
    for (const release of held) release();
    await clock.advanceBy(5_000);
    expect([held.length, saved]).toEqual([1, [1]]);
  });
});

import { describe, expect, it } from 'vitest';
import { memoryControlServer } from '../../../../src/adapters/memory/control-store.ts';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import type { ControlStore } from '../../../../src/ports/control-store.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';
import type { ActivePolicy } from '../../../../src/stages/request-router/active-policy.ts';
import { PolicySource } from '../../../../src/stages/request-router/policy-source.ts';
import { policy } from './router.fixture.ts';

const SCOPE = 'policy/test';
/** A hint or a poll has been followed by then. */
const FOLLOWED_MS = 1_500;

function start(wrap: (store: ControlStore) => ControlStore = (store) => store) {
  const clock = virtualClock();
  const server = memoryControlServer({ clock });
  const writer = server.connect();
  const telemetry = silentTelemetry();
  const applied: ActivePolicy[] = [];
  const source = new PolicySource({
    store: wrap(server.connect()),
    clock,
    random: seededRandom(1).stream('poll'),
    telemetry,
    scope: SCOPE,
    member: 'router-1',
    digest: (bytes) => `digest of ${Buffer.from(bytes).toString()}`,
    compile: (bytes) => {
      const text = Buffer.from(bytes).toString();
      if (text.startsWith('bad')) throw new Error(`${text} has no leaf`);
      return policy().compiled;
    },
    apply: (active) => applied.push(active),
  });
  const settle = async <T>(promise: Promise<T>): Promise<T> => {
    await clock.advanceBy(0);
    return promise;
  };
  /** Points to a text, which is stored as well unless told otherwise. */
  const publish = async (
    epoch: number,
    text: string,
    options: { withoutText?: boolean } = {},
  ): Promise<void> => {
    const digest = `digest of ${text}`;
    if (options.withoutText !== true) await settle(writer.putDocument(digest, Buffer.from(text)));
    await settle(
      writer.writePointer(SCOPE, { epoch, term: 1, stable: { digest, name: 'test', version: epoch } }),
    );
  };
  const report = async (): Promise<unknown> => {
    const reports = await settle(writer.readReports(SCOPE));
    return JSON.parse(reports.get('router-1') ?? 'null');
  };
  const started = async (): Promise<void> => {
    const starting = source.start();
    await clock.advanceBy(10);
    await starting;
  };
  return { clock, server, writer, telemetry, applied, source, settle, publish, report, started };
}

const epochs = (applied: readonly ActivePolicy[]): number[] => applied.map(({ epoch }) => epoch);

describe('a pointer', () => {
  it('that is there at the start is applied before the start is over', async () => {
    const { applied, publish, started, report } = start();
    await publish(3, 'a');
    await started();
    expect(applied).toMatchObject([
      { epoch: 3, source: 'store', ref: { digest: 'digest of a', name: 'test', version: 3 } },
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

  it('that comes back older changes nothing, and a higher one is followed again', async () => {
    const { clock, server, applied, publish, started } = start();
    await publish(1, 'a');
    const restore = server.backup();
    await publish(2, 'b');
    await started();
    restore();
    await clock.advanceBy(5_000);
    expect(epochs(applied)).toEqual([2]);
    await publish(3, 'c');
    await clock.advanceBy(FOLLOWED_MS);
    expect(epochs(applied)).toEqual([2, 3]);
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
      expect(await report()).toEqual({ epoch: 2, status: 'refused', reason });
      const refusals = telemetry.logs.filter(({ level }) => level === 'error');
      expect(refusals.map(({ fields }) => [fields['epoch'], fields['reason']])).toEqual([[2, reason]]);
    },
  );

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

/** A store whose answers come when the test lets them. */
class SlowStore {
  reading = 0;
  mostAtOnce = 0;
  reads = 0;
  readonly held: (() => void)[] = [];
  isHolding = false;

  wrap(store: ControlStore): ControlStore {
    return {
      readPointer: async (scope: string) => {
        this.reads += 1;
        this.reading += 1;
        this.mostAtOnce = Math.max(this.mostAtOnce, this.reading);
        try {
          return await store.readPointer(scope);
        } finally {
          this.reading -= 1;
        }
      },
      readDocument: async (digest: string) => {
        const document = await store.readDocument(digest);
        if (this.isHolding) await new Promise<void>((resolve) => this.held.push(resolve));
        return document;
      },
      writePointer: (scope, pointer) => store.writePointer(scope, pointer),
      putDocument: (digest, bytes) => store.putDocument(digest, bytes),
      watch: (scope, onHint) => store.watch(scope, onHint),
      acquireLease: (name, holder, ttlMs) => store.acquireLease(name, holder, ttlMs),
      report: (scope, member, text, ttlMs) => store.report(scope, member, text, ttlMs),
      readReports: (scope) => store.readReports(scope),
      close: () => store.close(),
    };
  }
}

describe('readings', () => {
  it('are one at a time, and a storm of hints costs two', async () => {
    const slow = new SlowStore();
    const { clock, applied, publish, started } = start((store) => slow.wrap(store));
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
    const { clock, applied, publish, source } = start((store) => slow.wrap(store));
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

  it('nothing is applied that was under way', async () => {
    const slow = new SlowStore();
    const { clock, applied, publish, source, started, settle } = start((store) => slow.wrap(store));
    await started();
    slow.isHolding = true;
    await publish(1, 'a');
    await clock.advanceBy(10);
    await settle(source.close());
    for (const release of slow.held) release();
    await clock.advanceBy(5_000);
    expect(applied).toEqual([]);
  });
});

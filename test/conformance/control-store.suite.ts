import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type CanaryPointer,
  COUNT_MAX,
  type ControlStore,
  DOCUMENT_BYTES_MAX,
  type Lease,
  type PolicyPointer,
} from '../../src/ports/control-store.ts';

/** What an adapter's test run provides: clients of one store that nobody else uses. */
export interface StoreFactory {
  connect(): ControlStore;
  close(): Promise<void>;
}

const LONG_MS = 60_000;
const SHORT_MS = 150;
const QUIET_MS = 200;

export const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function eventually(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = Date.now() + 20_000;
  while (!(await isSo())) {
    if (Date.now() > deadlineMs) throw new Error(`in 20 seconds, not: ${what}`);
    await pass(10);
  }
}

export function pointer(epoch: number, term: number, name = `policy-${epoch}-${term}`): PolicyPointer {
  return {
    epoch,
    term,
    stable: { digest: `sha256:${'0'.repeat(63)}${epoch % 10}`, name, version: epoch },
    canary: undefined,
  };
}

function withCanary(epoch: number, term: number, fields: Partial<CanaryPointer> = {}): PolicyPointer {
  const canary: CanaryPointer = {
    policy: { digest: `sha256:${'f'.repeat(64)}`, name: 'feed', version: epoch + 1 },
    mode: 'canary',
    percent: 5,
    salt: 'rollout-7',
    unit: 'bucketKey',
    leaseMs: 60_000,
    beat: 10,
    ...fields,
  };
  return { ...pointer(epoch, term), canary };
}

/** The same of another leader. */
function withTerm(term: number, pointer: PolicyPointer): PolicyPointer {
  return { ...pointer, term };
}

/** Every promise of the port `ControlStore`, asked of one adapter. */
export function controlStoreConformance(name: string, create: () => Promise<StoreFactory>): void {
  describe(`ControlStore on ${name}`, () => {
    let run: StoreFactory;
    let store: ControlStore;
    let other: ControlStore;

    beforeEach(async () => {
      run = await create();
      store = run.connect();
      other = run.connect();
    });
    afterEach(() => run.close());

    describe('pointers', () => {
      it('has none at first, and then the one that was written, for every client', async () => {
        expect(await store.readPointer('prod')).toBeUndefined();
        expect(await store.writePointer('prod', pointer(1, 1, 'ünïcode "quoted"'))).toEqual({
          status: 'applied',
        });
        expect(await other.readPointer('prod')).toEqual(pointer(1, 1, 'ünïcode "quoted"'));
        expect(await store.readPointer('staging')).toBeUndefined();
      });

      it.each([
        { epoch: 6, term: 3, applied: true },
        { epoch: 6, term: 4, applied: true },
        { epoch: COUNT_MAX, term: 3, applied: true },
        { epoch: 5, term: 3, applied: false },
        { epoch: 5, term: 4, applied: false },
        { epoch: 4, term: 9, applied: false },
        { epoch: 6, term: 2, applied: false },
        { epoch: 0, term: 0, applied: false },
      ])(
        'over epoch 5 of term 3, epoch $epoch of term $term: applied $applied',
        async ({ epoch, term, applied }) => {
          await store.writePointer('prod', pointer(5, 3));
          const written = await other.writePointer('prod', pointer(epoch, term));
          expect(written).toEqual(
            applied ? { status: 'applied' } : { status: 'stale', current: pointer(5, 3) },
          );
          expect(await store.readPointer('prod')).toEqual(applied ? pointer(epoch, term) : pointer(5, 3));
        },
      );

      it('is taken over by a later term that means the same, and then takes nothing of the term before', async () => {
        await store.writePointer('prod', pointer(5, 3));
        const taken = withTerm(4, pointer(5, 3));
        expect(await other.writePointer('prod', taken)).toEqual({ status: 'applied' });
        expect(await store.readPointer('prod')).toEqual(taken);
        for (const late of [pointer(6, 3), pointer(5, 3), withCanary(6, 3)])
          expect(await store.writePointer('prod', late)).toEqual({ status: 'stale', current: taken });
        expect(await store.writePointer('prod', pointer(6, 4))).toEqual({ status: 'applied' });
      });

      it('of a canary is taken over with its beats, and renewed by the later term alone', async () => {
        await store.writePointer('prod', withCanary(5, 3, { beat: 50 }));
        await other.writePointer('prod', withTerm(4, withCanary(5, 3, { beat: 1 })));
        const writes = [
          { next: withCanary(5, 3, { beat: 51 }), applied: false },
          { next: withTerm(4, withCanary(5, 3, { beat: 1 })), applied: false },
          { next: withTerm(4, withCanary(5, 3, { beat: 2 })), applied: true },
        ];
        for (const { next, applied } of writes)
          expect((await store.writePointer('prod', next)).status).toBe(applied ? 'applied' : 'stale');
      });

      it('only rises, whatever is written in whatever order', async () => {
        let scope = 0;
        const writes = fc.array(
          fc.tuple(fc.nat({ max: 12 }), fc.nat({ max: 4 }), fc.constantFrom('a', 'b')),
          {
            minLength: 1,
            maxLength: 25,
          },
        );
        await fc.assert(
          fc.asyncProperty(writes, async (pairs) => {
            scope++;
            let expected: PolicyPointer | undefined;
            for (const [epoch, term, name] of pairs) {
              const rises = expected === undefined || (epoch > expected.epoch && term >= expected.term);
              const takesOver =
                epoch === expected?.epoch && name === expected.stable.name && term > expected.term;
              const written = await store.writePointer(`scope-${scope}`, pointer(epoch, term, name));
              expect(written.status).toBe(rises || takesOver ? 'applied' : 'stale');
              if (rises || takesOver) expected = pointer(epoch, term, name);
              expect(await other.readPointer(`scope-${scope}`)).toEqual(expected);
            }
          }),
          { numRuns: 50 },
        );
      });

      it('keeps a canary with all its fields', async () => {
        await store.writePointer(
          'prod',
          withCanary(3, 1, { mode: 'shadow', percent: 0.25, unit: 'requestId' }),
        );
        expect(await other.readPointer('prod')).toEqual(
          withCanary(3, 1, { mode: 'shadow', percent: 0.25, unit: 'requestId' }),
        );
      });

      it.each([
        { what: 'a higher beat', next: withCanary(5, 3, { beat: 11 }), applied: true },
        { what: 'a far higher beat', next: withCanary(5, 3, { beat: COUNT_MAX }), applied: true },
        { what: 'the same beat', next: withCanary(5, 3), applied: false },
        { what: 'a lower beat', next: withCanary(5, 3, { beat: 9 }), applied: false },
        {
          what: 'a higher beat and another percent',
          next: withCanary(5, 3, { beat: 11, percent: 50 }),
          applied: false,
        },
        {
          what: 'a higher beat and another mode',
          next: withCanary(5, 3, { beat: 11, mode: 'shadow' }),
          applied: false,
        },
        {
          what: 'a higher beat and another salt',
          next: withCanary(5, 3, { beat: 11, salt: 'x' }),
          applied: false,
        },
        {
          what: 'a higher beat and another lease',
          next: withCanary(5, 3, { beat: 11, leaseMs: 1 }),
          applied: false,
        },
        {
          what: 'a higher beat of a later term',
          next: withTerm(4, withCanary(5, 3, { beat: 11 })),
          applied: true,
        },
        {
          what: 'a lower beat of a later term',
          next: withTerm(4, withCanary(5, 3, { beat: 1 })),
          applied: true,
        },
        {
          what: 'another percent of a later term',
          next: withTerm(4, withCanary(5, 3, { beat: 11, percent: 50 })),
          applied: false,
        },
        { what: 'no canary of a later term', next: withTerm(4, pointer(5, 3)), applied: false },
        {
          what: 'a higher beat of an earlier term',
          next: withTerm(2, withCanary(5, 3, { beat: 11 })),
          applied: false,
        },
        {
          what: 'a higher beat and another stable policy',
          next: { ...withCanary(5, 3, { beat: 11 }), stable: pointer(6, 3).stable },
          applied: false,
        },
        { what: 'no canary', next: pointer(5, 3), applied: false },
        { what: 'no canary at a higher epoch', next: pointer(6, 3), applied: true },
        { what: 'a lower beat at a higher epoch', next: withCanary(6, 3, { beat: 1 }), applied: true },
        { what: 'a higher beat at a lower epoch', next: withCanary(4, 3, { beat: 11 }), applied: false },
      ])(
        'over epoch 5 of term 3 with a canary at beat 10, $what: applied $applied',
        async ({ next, applied }) => {
          const before = withCanary(5, 3);
          await store.writePointer('prod', before);
          expect(await other.writePointer('prod', next)).toEqual(
            applied ? { status: 'applied' } : { status: 'stale', current: before },
          );
          expect(await store.readPointer('prod')).toEqual(applied ? next : before);
        },
      );

      it('gives a pointer without a canary no beat to renew', async () => {
        await store.writePointer('prod', pointer(5, 3));
        const withBeat = withCanary(5, 3, { beat: COUNT_MAX });
        for (const next of [pointer(5, 3), withBeat])
          expect(await store.writePointer('prod', next)).toEqual({ status: 'stale', current: pointer(5, 3) });
      });

      it('renews whatever the order of the fields', async () => {
        await store.writePointer('prod', withCanary(5, 3));
        const { canary, stable, term, epoch } = withCanary(5, 3, { beat: 11 });
        const reversed = Object.fromEntries(
          Object.entries(canary ?? {}).reverse(),
        ) as unknown as CanaryPointer;
        expect(await store.writePointer('prod', { canary: reversed, stable, term, epoch })).toEqual({
          status: 'applied',
        });
      });

      it('applies one of several that are written at once under the same epoch', async () => {
        const clients = [store, other, run.connect()];
        const writes = Array.from({ length: 24 }, (_, i) =>
          clients[i % 3]?.writePointer('prod', pointer(7, 1, `w${i}`)),
        );
        const written = await Promise.all(writes);
        expect(written.filter((each) => each?.status === 'applied')).toHaveLength(1);
        const winner = written.findIndex((each) => each?.status === 'applied');
        expect((await store.readPointer('prod'))?.stable.name).toBe(`w${winner}`);
      });
    });

    describe('documents', () => {
      it.each([
        { what: 'nothing', bytes: new Uint8Array(0) },
        { what: 'every byte', bytes: Uint8Array.from({ length: 256 }, (_, byte) => byte) },
        { what: '64 KB', bytes: new Uint8Array(65_536).fill(7) },
      ])('keeps $what byte for byte', async ({ bytes }) => {
        expect(await other.hasDocument('sha256:abc')).toBe(false);
        await store.putDocument('sha256:abc', bytes);
        expect(await other.readDocument('sha256:abc')).toEqual(bytes);
        expect(await other.readDocument('sha256:abd')).toBeUndefined();
        expect(await other.hasDocument('sha256:abc')).toBe(true);
        expect(await other.hasDocument('sha256:abd')).toBe(false);
      });

      it('are taken up to the limit, and refused beyond it', async () => {
        const longest = new Uint8Array(DOCUMENT_BYTES_MAX).fill(7);
        await store.putDocument('sha256:abc', longest);
        expect((await other.readDocument('sha256:abc'))?.byteLength).toBe(DOCUMENT_BYTES_MAX);
        const tooLong = new Uint8Array(DOCUMENT_BYTES_MAX + 1);
        await expect(store.putDocument('sha256:abd', tooLong)).rejects.toMatchObject({
          code: 'TOO_LARGE',
          message: expect.stringMatching(/sha256:abd .*got 1048577; allowed: at most 1048576 bytes/),
        });
        expect(await other.readDocument('sha256:abd')).toBeUndefined();
      });

      it('does nothing when a digest is stored again', async () => {
        await store.putDocument('sha256:abc', new Uint8Array([1]));
        await other.putDocument('sha256:abc', new Uint8Array([2]));
        expect(await store.readDocument('sha256:abc')).toEqual(new Uint8Array([1]));
      });
    });

    describe('envelopes and revocations', () => {
      it('are kept byte for byte, and the newest counts', async () => {
        expect(await other.readEnvelope('sha256:abc')).toBeUndefined();
        expect(await other.readRevocations()).toBeUndefined();
        await store.putDocument('sha256:abc', new Uint8Array([9]));
        for (const bytes of [new Uint8Array([0, 255]), new Uint8Array([2])]) {
          await store.putEnvelope('sha256:abc', bytes);
          await store.putRevocations(bytes);
          expect(await other.readEnvelope('sha256:abc')).toEqual(bytes);
          expect(await other.readRevocations()).toEqual(bytes);
        }
        expect(await other.readDocument('sha256:abc')).toEqual(new Uint8Array([9]));
        expect(await other.readEnvelope('sha256:abd')).toBeUndefined();
      });
    });

    describe('hints', () => {
      it('come once the watch stands, and after each write to the scope by anybody', async () => {
        let hints = 0;
        const unwatch = await store.watch('prod', () => hints++);
        await eventually('the first hint', () => hints >= 1);
        for (const [client, epoch] of [
          [other, 1],
          [store, 2],
        ] as const) {
          const before = hints;
          await client.writePointer('prod', pointer(epoch, 1));
          await eventually(`the hint of epoch ${epoch}`, () => hints > before);
        }
        const before = hints;
        await other.writePointer('staging', pointer(1, 1));
        await pass(QUIET_MS);
        expect(hints).toBe(before);
        await unwatch();
        await unwatch();
        await other.writePointer('prod', pointer(3, 1));
        await pass(QUIET_MS);
        expect(hints).toBe(before);
      });

      it('come after a renewal as well, and not after what was stale', async () => {
        let hints = 0;
        await store.writePointer('prod', withCanary(1, 1));
        await store.watch('prod', () => hints++);
        await eventually('the first hint', () => hints >= 1);
        const first = hints;
        await other.writePointer('prod', withCanary(1, 1, { beat: 11 }));
        await eventually('the hint of the beat', () => hints > first);
        const before = hints;
        await other.writePointer('prod', withCanary(1, 1, { beat: 11 }));
        await pass(QUIET_MS);
        expect(hints).toBe(before);
      });

      it('reach every watcher, each until it stops', async () => {
        const hints = [0, 0];
        const watch = (i: number): Promise<() => Promise<void>> =>
          store.watch('prod', () => {
            hints[i] = (hints[i] ?? 0) + 1;
          });
        const unwatchFirst = await watch(0);
        await watch(1);
        await eventually('the first hints', () => hints.every((count) => count >= 1));
        await unwatchFirst();
        const before = [...hints];
        await other.writePointer('prod', pointer(1, 1));
        await eventually('the hint of the second', () => (hints[1] ?? 0) > (before[1] ?? 0));
        expect(hints[0]).toBe(before[0]);
      });
    });

    describe('leases', () => {
      it('belong to one holder until it gives them back', async () => {
        const lease = await store.acquireLease(['partition-0'], 'router-a', LONG_MS);
        expect(lease).toMatchObject({ name: 'partition-0', holder: 'router-a' });
        expect(await other.acquireLease(['partition-0'], 'router-b', LONG_MS)).toBeUndefined();
        expect(await other.acquireLease(['partition-1'], 'router-b', LONG_MS)).toBeDefined();
        expect(await lease?.renew()).toBe(true);
        await lease?.release();
        expect(await lease?.renew()).toBe(false);
        expect(await other.acquireLease(['partition-0'], 'router-b', LONG_MS)).toBeDefined();
      });

      it('are found again by their holder', async () => {
        await store.acquireLease(['partition-0'], 'router-a', LONG_MS);
        expect(await other.acquireLease(['partition-0'], 'router-a', LONG_MS)).toBeDefined();
      });

      it('are the first of several names that nobody has', async () => {
        const names = ['acks/2', 'acks/0', 'acks/1'];
        const holders = ['router-a', 'router-b', 'router-c', 'router-d'];
        const leases: (Lease | undefined)[] = [];
        for (const holder of holders) leases.push(await store.acquireLease(names, holder, LONG_MS));
        expect(leases.map((lease) => lease?.name)).toEqual(['acks/2', 'acks/0', 'acks/1', undefined]);
        await leases[0]?.release();
        // Its own before a free one, so that nobody ends up with two.
        expect((await other.acquireLease(names, 'router-b', LONG_MS))?.name).toBe('acks/0');
        expect((await other.acquireLease(names, 'router-d', LONG_MS))?.name).toBe('acks/2');
        expect(await leases[1]?.renew()).toBe(true);
      });

      it('go to another when their time is up, and the first holder is told', async () => {
        const lease = await store.acquireLease(['partition-0'], 'router-a', SHORT_MS);
        await eventually('another holder has it', async () => {
          return (await other.acquireLease(['partition-0'], 'router-b', LONG_MS)) !== undefined;
        });
        expect(await lease?.renew()).toBe(false);
        await lease?.release();
        expect(await other.acquireLease(['partition-0'], 'router-c', LONG_MS)).toBeUndefined();
      });

      it('last as long as they are renewed', async () => {
        const lease = await store.acquireLease(['partition-0'], 'router-a', 1_000);
        for (let i = 0; i < 6; i++) {
          await pass(250);
          expect(await lease?.renew()).toBe(true);
          expect(await other.acquireLease(['partition-0'], 'router-b', LONG_MS)).toBeUndefined();
        }
      });

      it('go to one of many that want them at once', async () => {
        const clients = [store, other];
        const leases = await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            clients[i % 2]?.acquireLease(['partition-0'], `router-${i}`, LONG_MS),
          ),
        );
        expect(leases.filter((lease) => lease !== undefined)).toHaveLength(1);
      });
    });

    describe('reports', () => {
      it('are kept per scope and member, the newest of each', async () => {
        await store.report('prod', 'router-a', '1 ACK', LONG_MS);
        await store.report('prod', 'router-a', '2 NACK: schlüssel "x" fehlt', LONG_MS);
        await other.report('prod', 'router b', '', LONG_MS);
        await other.report('staging', 'router-c', 'elsewhere', LONG_MS);
        expect(await store.readReports('prod')).toEqual(
          new Map([
            ['router-a', '2 NACK: schlüssel "x" fehlt'],
            ['router b', ''],
          ]),
        );
        expect(await store.readReports('nowhere')).toEqual(new Map());
      });

      it('are gone when their time is up, each by itself', async () => {
        await store.report('prod', 'lasting', 'ACK', LONG_MS);
        await store.report('prod', 'passing', 'ACK', SHORT_MS);
        expect((await store.readReports('prod')).has('lasting')).toBe(true);
        await eventually('the report is gone', async () => !(await other.readReports('prod')).has('passing'));
        expect((await store.readReports('prod')).has('lasting')).toBe(true);
      });
    });

    it('says STORE_UNAVAILABLE once it is closed, and hints nobody', async () => {
      let hints = 0;
      await store.watch('prod', () => hints++);
      await eventually('the first hint', () => hints >= 1);
      await store.close();
      await expect(store.readPointer('prod')).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        retryable: true,
      });
      await expect(store.watch('prod', () => {})).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      const before = hints;
      await other.writePointer('prod', pointer(1, 1));
      await pass(QUIET_MS);
      expect(hints).toBe(before);
      await store.close();
    });
  });
}

import { describe, expect, it } from 'vitest';
import { memoryLastKnownGood } from '../../../../src/adapters/memory/last-known-good.ts';
import type { ControlCommand } from '../../../../src/contracts/records.ts';
import type { KeyRing } from '../../../../src/core/control/key-ring.ts';
import { writeRevocations } from '../../../../src/core/control/policy-envelope.ts';
import { REFERENCE_FLEET } from '../../../../src/core/policy/fleet.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { readRouterReport } from '../../../../src/core/rollout/router-report.ts';
import type { LastKnownGood } from '../../../../src/ports/last-known-good.ts';
import { PolicyProofs } from '../../../../src/stages/policy-controller/policy-proofs.ts';
import type { ActivePolicy } from '../../../../src/stages/request-router/active-policy.ts';
import { PolicySource } from '../../../../src/stages/request-router/policy-source.ts';
import { compileChecked, digestOf } from '../../../../src/wiring/policy-files.ts';
import { HOUR_MS, type Person, person, ringOf, signed, verify } from '../../core/control/keys.fixture.ts';
import { type ControlRoom, command, lead, openControlRoom, publish, SCOPE } from './controller.fixture.ts';

const ana = person('ana', { scopes: ['policy/*', 'keys'] });
const ben = person('ben', { scopes: ['policy/*', 'keys'] });
const own = person('controller', { role: 'controller' });
const keys = ringOf(ana, ben, own);

const textOf = (version: number, floor = 100): string => `apiVersion: millrace/v1
kind: RoutingPolicy
name: feed
version: ${version}
signals: {activationBytes: int}
tree:
  - id: large
    when: 'activationBytes > tune("floor", ${floor}, min: 40, max: 250, step: 25%)'
    to: {accelerator: gpu-a100, kernel: dense, memory: hbm}
  - id: small
    to: {accelerator: gpu-v100, kernel: dense, memory: l2}
`;

/** A controller that takes nothing unsigned, and signs what it tunes. */
const leadStrictly = (room: ControlRoom, deps: { signer?: Person['signer'] } = { signer: own.signer }) =>
  lead(room, {
    config: { acceptUnsigned: false },
    deps: {
      signatures: { keys, verify },
      digest: digestOf,
      checkPolicy: (bytes) => parsePolicy(Buffer.from(bytes)),
      ...deps,
    },
  });

const sign = (room: ControlRoom, sent: ControlCommand, by: Person): ControlCommand =>
  signed(sent, by, { notAfterMs: room.world.clock.wallMs() + HOUR_MS });

async function send(room: ControlRoom, sent: ControlCommand, by: Person): Promise<void> {
  await room.send(sign(room, sent, by));
  await room.world.clock.advanceBy(200);
  expect(room.events.at(-1)).toMatchObject({ accepted: true });
}

const publishText = (text: string, id = digestOf(Buffer.from(text))): ControlCommand =>
  publish(1, { commandId: `publish ${id}`, body: Buffer.from(text) });
const revoke = (keyId: string): ControlCommand =>
  command('REVOKE_KEY', JSON.stringify({ keyId }), `revoke ${keyId}`);

/** A router that follows the store, by the same checks as in production. */
async function openRouter(
  room: ControlRoom,
  { ring = keys, lastKnownGood }: { ring?: KeyRing; lastKnownGood?: LastKnownGood } = {},
) {
  const applied: ActivePolicy[] = [];
  const { clock, telemetry } = room.world;
  const store = room.server.connect();
  const source = new PolicySource({
    store,
    clock,
    telemetry,
    random: seededRandom(1).stream('poll'),
    scope: SCOPE,
    member: 'router-1',
    lastKnownGood,
    digest: digestOf,
    trust: { keys: ring, acceptUnsigned: false, verify },
    compile: (bytes, root) => compileChecked(bytes, REFERENCE_FLEET, root),
    apply: (stable) => void applied.push(stable),
  });
  const starting = source.start();
  await clock.advanceBy(1_000);
  await starting;
  return {
    version: () => applied.at(-1)?.ref.version,
    source: () => applied.at(-1)?.source,
    floor: () => applied.at(-1)?.compiled.tunables[0]?.value,
    async refusal(): Promise<string | undefined> {
      await clock.advanceBy(1_500);
      const report = readRouterReport(
        (await room.world.settle(store.readReports(SCOPE))).get('router-1') ?? '',
      );
      return report?.status === 'refused' ? report.reason : undefined;
    },
    close: () => room.world.settle(source.close()),
  };
}

/** What somebody does who may write to the store, and to no topic. */
async function forge(room: ControlRoom, text: string, envelope?: Uint8Array): Promise<void> {
  const store = room.server.connect();
  const digest = digestOf(Buffer.from(text));
  const settle = <T>(promise: Promise<T>): Promise<T> => room.world.settle(promise);
  await settle(store.putDocument(digest, Buffer.from(text)));
  if (envelope !== undefined) await settle(store.putEnvelope(digest, envelope));
  const { name, version } = parsePolicy(text);
  await settle(
    store.writePointer(SCOPE, { epoch: 99, term: 99, stable: { digest, name, version }, canary: undefined }),
  );
}

/** A controller that was taken over signs a text of its own, as if it came of the other by tuning. */
function signedAsTuned(room: ControlRoom, text: string, root: string): Uint8Array | undefined {
  const proofs = new PolicyProofs(own.signer);
  const digest = digestOf(Buffer.from(text));
  proofs.remember(
    {
      type: 'policy-tuned',
      commandId: '',
      scope: SCOPE,
      actor: 'tuning',
      policy: { digest, name: 'feed', version: 2 },
      text,
      name: 'floor',
      value: 100,
      reason: 'none',
      atMs: room.world.clock.wallMs(),
      epoch: 99,
    },
    { command: undefined, appendedMs: 0 },
    digestOf(Buffer.from(root)),
  );
  return proofs.envelopeOf(digest);
}

describe('a router that takes signed policies only', () => {
  it('runs what people published, and what the controller tuned of it, step by step and back', async () => {
    const room = await openControlRoom();
    await leadStrictly(room);
    await send(room, publishText(textOf(1)), ana);
    const router = await openRouter(room);
    expect(router.version()).toBe(1);
    for (const [n, value] of [125, 156.25, 100].entries()) {
      await send(room, command('TUNE', JSON.stringify({ name: 'floor', value }), `tune ${n}`), ben);
      expect(await router.refusal()).toBeUndefined();
      expect([router.version(), router.floor()]).toEqual([n + 2, value]);
    }
    await send(room, command('ROLL_BACK', '', 'undo'), ana);
    expect(await router.refusal()).toBeUndefined();
    expect(router.floor()).toBe(156.25);
    await router.close();
  });

  it('meets a child for the first time, after the controller was replaced and the store emptied', async () => {
    const room = await openControlRoom();
    const first = await leadStrictly(room);
    await send(room, publishText(textOf(1)), ana);
    await send(room, command('TUNE', '{"name": "floor", "value": 150}'), ben);
    await room.world.settle(first.stage.close());
    room.server.empty();
    await leadStrictly(room);
    await room.world.clock.advanceBy(500);
    const router = await openRouter(room);
    expect([router.version(), router.floor()]).toEqual([2, 150]);
    await router.close();
  });

  it.each<[what: string, lose: (room: ControlRoom) => unknown]>([
    ['texts', ({ server }) => server.lose('documents')],
    ['signatures', ({ server }) => server.lose('envelopes')],
    ['revoked keys', ({ server }) => server.lose('revocations')],
    [
      'revoked keys to a leader that was replaced',
      ({ world, server }) => world.settle(server.connect().putRevocations(writeRevocations([]))),
    ],
  ])('finds a child, its root and the revoked keys in a store that lost the %s', async (_what, lose) => {
    const room = await openControlRoom();
    await leadStrictly(room);
    await send(room, publishText(textOf(1)), ana);
    await send(room, command('TUNE', '{"name": "floor", "value": 150}'), ben);
    await send(room, { ...revoke('ben'), scope: 'keys' }, ana);
    const store = room.server.connect();
    const revocations = await room.world.settle(store.readRevocations());
    await lose(room);
    await room.world.clock.advanceBy(1_500);
    expect(await room.world.settle(store.readRevocations())).toEqual(revocations);
    const router = await openRouter(room);
    expect([router.version(), router.floor()]).toEqual([2, 150]);
    await router.close();
  });

  it.each<[string, (room: ControlRoom) => Promise<void>, RegExp]>([
    ['that nobody signed', (room) => forge(room, textOf(9)), /^signature: nobody signed it/],
    [
      'with the signature of another text',
      async (room) => {
        const store = room.server.connect();
        const digest = digestOf(Buffer.from(textOf(1)));
        await forge(room, textOf(9), await room.world.settle(store.readEnvelope(digest)));
      },
      /^signature: .*does not fit/,
    ],
    [
      'with bytes for a signature',
      (room) => forge(room, textOf(9), Buffer.from('{"kind": "published"}')),
      /^signature: what should vouch for it cannot be read/,
    ],
  ])('refuses one %s, says why, and goes on with what it runs', async (_name, attack, reason) => {
    const room = await openControlRoom();
    await leadStrictly(room);
    await send(room, publishText(textOf(1)), ana);
    const router = await openRouter(room);
    await attack(room);
    expect(await router.refusal()).toMatch(reason);
    expect(router.version()).toBe(1);
    expect(JSON.stringify(room.world.telemetry.logs)).toContain('policy refused; the one in force stays');
    await router.close();
  });

  it("refuses what a controller's key signed, where that is more than tuning", async () => {
    const room = await openControlRoom();
    await leadStrictly(room);
    await send(room, publishText(textOf(1)), ana);
    const router = await openRouter(room);
    const bad = textOf(2).replace('memory: hbm', 'memory: l2');
    await forge(room, bad, signedAsTuned(room, bad, textOf(1)));
    expect(await router.refusal()).toMatch(/more than its tuned constants/);
    expect(router.version()).toBe(1);
    await router.close();
  });

  it("refuses what a controller's key signed, where no person published the policy that it came of", async () => {
    const room = await openControlRoom();
    await leadStrictly(room);
    await send(room, publishText(textOf(1)), ana);
    const router = await openRouter(room);
    const [root, bad] = [2, 3].map((version) => textOf(version).replace('memory: hbm', 'memory: l2'));
    if (root === undefined || bad === undefined) throw new Error('two texts were made');
    // Of the bad one it is true that it is its root with another version, and a controller's key signed both.
    const store = room.server.connect();
    const rootBytes = Buffer.from(root);
    const rootEnvelope = signedAsTuned(room, root, textOf(1)) ?? new Uint8Array();
    await room.world.settle(store.putDocument(digestOf(rootBytes), rootBytes));
    await room.world.settle(store.putEnvelope(digestOf(rootBytes), rootEnvelope));
    await forge(room, bad, signedAsTuned(room, bad, root));
    expect(await router.refusal()).toMatch(/^signature: the policy that it was tuned from was not published/);
    expect(router.version()).toBe(1);
    await router.close();
  });

  it('takes nothing new by a key that was revoked, until somebody else signs it', async () => {
    const room = await openControlRoom();
    await leadStrictly(room);
    await send(room, publishText(textOf(1)), ana);
    const running = await openRouter(room);
    await room.send(sign(room, { ...revoke('ana'), scope: 'keys' }, ben));
    await room.world.clock.advanceBy(200);
    // who runs it goes on; who meets it now does not begin
    expect(await running.refusal()).toBeUndefined();
    expect(running.version()).toBe(1);
    await running.close();
    const fresh = await openRouter(room);
    expect(await fresh.refusal()).toBe('signature: the key ana is revoked');
    expect(fresh.version()).toBeUndefined();
    await send(room, publishText(textOf(1), 'again'), ben);
    expect(await fresh.refusal()).toBeUndefined();
    expect(fresh.version()).toBe(1);
    await fresh.close();
  });
});

describe('the last-known-good of a router that takes signed policies only', () => {
  async function kept(): Promise<{ room: ControlRoom; lastKnownGood: LastKnownGood }> {
    const room = await openControlRoom();
    await leadStrictly(room);
    await send(room, publishText(textOf(1)), ana);
    await send(room, command('TUNE', '{"name": "floor", "value": 150}'), ben);
    const lastKnownGood = memoryLastKnownGood();
    const router = await openRouter(room, { lastKnownGood });
    expect(router.version()).toBe(2);
    await router.close();
    room.server.stop();
    return { room, lastKnownGood };
  }

  it.each([
    ['as it is', keys],
    [
      'after the keys that signed it ran out',
      new Map([...keys].map(([id, key]) => [id, { ...key, notAfter: Date.UTC(2026, 0, 2) }])),
    ],
  ])('is loaded while the store is away: %s', async (_name, ring) => {
    const { room, lastKnownGood } = await kept();
    const router = await openRouter(room, { ring, lastKnownGood });
    expect([router.version(), router.floor(), router.source()]).toEqual([2, 150, 'last-known-good']);
    await router.close();
  });

  it.each<[string, (good: Parameters<LastKnownGood['save']>[1]) => Parameters<LastKnownGood['save']>[1]]>([
    ['without its envelopes', (good) => ({ ...good, envelopes: new Map() })],
    [
      'with the signatures exchanged',
      (good) => {
        const values = [...good.envelopes.values()].reverse();
        return {
          ...good,
          envelopes: new Map(
            [...good.envelopes.keys()].map((key, n) => [key, values[n] ?? new Uint8Array()]),
          ),
        };
      },
    ],
    [
      'without what it was tuned from',
      (good) => ({ ...good, documents: new Map([...good.documents].slice(0, 1)) }),
    ],
  ])('is not loaded %s', async (_name, change) => {
    const { room, lastKnownGood } = await kept();
    const [good] = await lastKnownGood.load(SCOPE);
    if (good === undefined) throw new Error('nothing was kept');
    const changed = memoryLastKnownGood();
    await changed.save(SCOPE, change(good));
    const router = await openRouter(room, { lastKnownGood: changed });
    expect(router.version()).toBeUndefined();
    await router.close();
  });
});

describe('a router that starts with what it kept', () => {
  it('still knows the keys that were out, where the store forgot them', async () => {
    const room = await openControlRoom();
    const leader = await leadStrictly(room);
    await send(room, publishText(textOf(1)), ben);
    await send(room, publishText(textOf(2)), ana);
    await send(room, command('ROLL_BACK', '', 'undo'), ben);
    await send(room, { ...revoke('ana'), scope: 'keys' }, ben);
    const lastKnownGood = memoryLastKnownGood();
    const router = await openRouter(room, { lastKnownGood });
    expect(router.version()).toBe(1);
    await router.close();
    const store = room.server.connect();
    const envelope = await room.world.settle(store.readEnvelope(digestOf(Buffer.from(textOf(2)))));
    // Nobody is there who would write them again.
    await room.world.settle(leader.stage.close());
    room.server.lose('revocations');
    await forge(room, textOf(2), envelope);
    const restarted = await openRouter(room, { lastKnownGood });
    expect(restarted.source()).toBe('last-known-good');
    expect(await restarted.refusal()).toBe('signature: the key ana is revoked');
    expect(restarted.version()).toBe(1);
    await restarted.close();
  });
});

describe('a controller without a key of its own', () => {
  it('tunes nothing where signatures are demanded: every router would refuse it', async () => {
    const room = await openControlRoom();
    await leadStrictly(room, {});
    await send(room, publishText(textOf(1)), ana);
    await room.send(sign(room, command('TUNE', '{"name": "floor", "value": 150}'), ben));
    await room.world.clock.advanceBy(200);
    expect(room.events.at(-1)?.reason).toMatch(/no key of its own \(controller.signingKey\)/);
  });
});

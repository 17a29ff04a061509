import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ControllerEvent } from '../../../../src/core/control/controller-event.ts';
import { readControllerEvent } from '../../../../src/core/control/read-event.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { replay } from '../../../../src/core/rollout/replay.ts';
import { DEFAULT_TUNING } from '../../../../src/core/tuning/tuning-terms.ts';
import type { ControllerDeps } from '../../../../src/stages/policy-controller/controller.ts';
import { type Doing, observe } from '../../core/tuning/tuning.fixture.ts';
import { type ControlRoom, command, lead, openControlRoom, publish, SCOPE } from './controller.fixture.ts';

const TERMS = { ...DEFAULT_TUNING, periodMs: 1_000 };
const POLICY = `apiVersion: millrace/v1
kind: RoutingPolicy
name: feed
version: 1
signals: {activationBytes: int}
tree:
  - id: large
    when: 'activationBytes > tune("floor", 100, min: 40, max: 250, step: 25%)'
    to: {accelerator: gpu-a100, kernel: dense, memory: hbm}
  - id: small
    to: {accelerator: gpu-v100, kernel: dense, memory: l2}
tests:
  - {signals: {activationBytes: 300}, leaf: large}
`;

const digest = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Sees what a test says that the domain does, and notes which versions it was told of. */
function fakeTuner() {
  const doing: { hbm: Doing } = { hbm: {} };
  const followed: number[] = [];
  const tuner: NonNullable<ControllerDeps['tuner']> = {
    follow: ({ version }) => void followed.push(version),
    observe({ document, rollout }, state, periodMs, atMs) {
      const { version, tuned } = document;
      const value = tuned.get('floor') ?? 100;
      const told = { state, events: [], atMs: atMs - periodMs, version, value };
      return { ...observe(told, { hbm: doing.hbm, rollout }, TERMS), rollout };
    },
  };
  return { tuner, doing, followed };
}

async function leading(room: ControlRoom, tuner?: ControllerDeps['tuner']) {
  return lead(room, {
    config: { tuning: TERMS },
    deps: {
      digest,
      checkPolicy: (bytes) => parsePolicy(Buffer.from(bytes).toString()),
      ...(tuner && { tuner }),
    },
  });
}

const log = (room: ControlRoom): ControllerEvent[] =>
  room.events.flatMap(({ evidence }) => readControllerEvent(evidence) ?? []);

const typesOf = (room: ControlRoom): string[] =>
  room.events.map(({ type }) => type).filter((type) => type !== 'tuning-looked');

async function published(room: ControlRoom): Promise<void> {
  await room.send(publish(1, { body: Buffer.from(POLICY) }));
  await room.world.clock.advanceBy(100);
}

describe('the tuning of a live policy', () => {
  it('steps away from a domain that degrades: a child is live, and back when it heals', async () => {
    const room = await openControlRoom();
    const { tuner, doing, followed } = fakeTuner();
    await leading(room, tuner);
    await published(room);
    await room.world.clock.advanceBy(7 * 1_100);
    expect(typesOf(room)).toEqual(['leadership-taken', 'policy-published']);
    doing.hbm = { factor: 2.5 };
    await room.world.clock.advanceBy(3 * 1_100);
    expect(typesOf(room).slice(2, 4)).toEqual(['tuning-stepped', 'policy-tuned']);
    expect(followed[0]).toBe(2);
    const tuned = log(room).find((event) => event.type === 'policy-tuned');
    expect(tuned).toMatchObject({ actor: 'tuning', name: 'floor', value: 125, epoch: 2 });
    const text = tuned?.type === 'policy-tuned' ? tuned.text : '';
    expect(parsePolicy(text)).toMatchObject({ version: 2, tuned: new Map([['floor', 125]]) });
    doing.hbm = {};
    await room.world.clock.advanceBy(40 * 1_100);
    const live = await room.pointer();
    const values = log(room).flatMap((event) => (event.type === 'policy-tuned' ? [event.value] : []));
    expect(values.at(-1)).toBe(100);
    expect(live?.stable.version).toBe(1 + values.length);
  });

  it('is derived again from the log, and taken over by the next leader with the text of the child', async () => {
    const room = await openControlRoom();
    const { tuner, doing } = fakeTuner();
    const first = await leading(room, tuner);
    await published(room);
    await room.world.clock.advanceBy(7 * 1_100);
    doing.hbm = { factor: 2.5 };
    await room.world.clock.advanceBy(3 * 1_100);
    const before = await room.pointer();
    expect(before?.stable.version).toBeGreaterThan(1);
    const told = replay(log(room));
    expect(told.disagreements).toEqual([]);
    expect(told.confirmed).toBeGreaterThan(8);
    await room.world.settle(first.stage.close());
    room.server.empty();
    const second = await leading(room, tuner);
    await room.world.clock.advanceBy(500);
    expect(second.stage.controller.state.scopes.get(SCOPE)?.live).toEqual(before?.stable);
    expect(await room.pointer()).toMatchObject({ stable: before?.stable });
    const store = room.server.connect();
    const child = await room.world.settle(store.readDocument(before?.stable.digest ?? ''));
    const document = parsePolicy(Buffer.from(child ?? []).toString());
    expect(document.version).toBe(before?.stable.version);
    expect(document.tuned.get('floor')).toBeGreaterThan(100);
    expect(second.stage.controller.state.scopes.get(SCOPE)?.tuning).toEqual(
      replay(log(room)).state.scopes.get(SCOPE)?.tuning,
    );
  });

  type Child = Extract<ControllerEvent, { type: 'policy-tuned' }>;

  /** A constant that a person set, and then steps off a domain that got slower. */
  async function tuned(): Promise<readonly ControllerEvent[]> {
    const room = await openControlRoom();
    const { tuner, doing } = fakeTuner();
    await leading(room, tuner);
    await published(room);
    await room.send(command('TUNE', '{"name": "floor", "value": 110}'));
    await room.world.clock.advanceBy(7 * 1_100);
    doing.hbm = { factor: 2.5 };
    await room.world.clock.advanceBy(3 * 1_100);
    return log(room);
  }

  it.each<[who: string, actor: RegExp, change: (child: Child) => Child]>([
    ['a step: another value', /^tuning$/, (child) => ({ ...child, value: child.value + 1 })],
    ['a step: another constant', /^tuning$/, (child) => ({ ...child, name: 'other' })],
    ['a step: another time', /^tuning$/, (child) => ({ ...child, atMs: child.atMs + 1 })],
    ['a step: another epoch', /^tuning$/, (child) => ({ ...child, epoch: child.epoch + 1 })],
    ['a step: somebody’s', /^tuning$/, (child) => ({ ...child, actor: 'eve' })],
    [
      'a step: another version',
      /^tuning$/,
      (child) => ({ ...child, policy: { ...child.policy, version: child.policy.version + 1 } }),
    ],
    ['a person: another epoch', /^(?!tuning$)/, (child) => ({ ...child, epoch: child.epoch + 1 })],
    ['a person: another reason', /^(?!tuning$)/, (child) => ({ ...child, reason: 'none' })],
  ])('is found out where somebody changed the child of %s', async (_who, actor, change) => {
    const events = await tuned();
    const place = events.findIndex((event) => event.type === 'policy-tuned' && actor.test(event.actor));
    const child = events[place];
    if (child?.type !== 'policy-tuned') throw new Error('there is no such child');
    expect(replay(events).disagreements).toEqual([]);
    const { disagreements } = replay(events.with(place, change(child)));
    expect(disagreements.map(({ index }) => index)).toContain(place);
  });

  it('is found out where a child stands in the log that no step asked for', async () => {
    const events = await tuned();
    const place = events.findLastIndex((event) => event.type === 'policy-tuned');
    const child = events[place];
    if (child?.type !== 'policy-tuned') throw new Error('there is no child');
    const { policy, epoch } = child;
    const forged = { ...child, policy: { ...policy, digest: 'sha256:0' }, text: 'forged', epoch: epoch + 1 };
    const { disagreements } = replay(events.toSpliced(place + 1, 0, forged));
    expect(disagreements[0]).toMatchObject({ index: place + 1, derived: undefined });
  });

  it('looks once in a period, though the controller asks more often: what was seen until then is gone', async () => {
    const room = await openControlRoom();
    const { tuner } = fakeTuner();
    let looks = 0;
    const counting: typeof tuner = {
      ...tuner,
      observe: (...seen) => {
        looks += 1;
        return tuner.observe(...seen);
      },
    };
    await leading(room, counting);
    await published(room);
    await room.world.clock.advanceBy(10_000);
    expect(looks).toBeGreaterThan(7);
    expect(looks).toBeLessThan(12);
  });

  it.each([
    ['nothing yet, and that is no fault', undefined, 0],
    ['what cannot be, and the log of the process says so', { atMs: -1 }, 1],
  ])('decides nothing where its observer has %s', async (_, seen, faults) => {
    const room = await openControlRoom();
    const { tuner } = fakeTuner();
    let looks = 0;
    const observe: typeof tuner.observe = (...asked) => {
      const whole = tuner.observe(...asked);
      looks += 1;
      return looks > 1 || seen === undefined || whole === undefined ? undefined : { ...whole, ...seen };
    };
    await leading(room, { ...tuner, observe });
    await published(room);
    await room.world.clock.advanceBy(3_000);
    expect(room.events.map(({ type }) => type)).toEqual(['leadership-taken', 'policy-published']);
    const told = room.world.telemetry.logs.filter(({ level }) => level === 'error');
    expect(told.map(({ message }) => message)).toEqual(
      Array(faults).fill('an observation for tuning is impossible; it is left out'),
    );
  });

  it('leaves policies without such constants alone, and all where nobody turned it on', async () => {
    const room = await openControlRoom();
    const { tuner, doing } = fakeTuner();
    await leading(room, tuner);
    await room.send(publish(1, { body: Buffer.from(POLICY.replace(/tune\(.*\)/, '100')) }));
    doing.hbm = { factor: 3 };
    await room.world.clock.advanceBy(12_000);
    expect(room.events.map(({ type }) => type)).toEqual(['leadership-taken', 'policy-published']);
  });
});

describe('TUNE', () => {
  it('moves a constant of the live policy by hand, as a version of its own', async () => {
    const room = await openControlRoom();
    await leading(room);
    await published(room);
    await room.send(command('TUNE', '{"name": "floor", "value": 150}'));
    await room.world.clock.advanceBy(100);
    expect(typesOf(room).at(-1)).toBe('policy-tuned');
    expect(await room.pointer()).toMatchObject({ epoch: 2, stable: { name: 'feed', version: 2 } });
    await room.send(command('ROLL_BACK', '', 'undo'));
    await room.world.clock.advanceBy(100);
    expect(await room.pointer()).toMatchObject({ epoch: 3, stable: { version: 1 } });
  });

  it.each([
    ['a value out of its bounds', '{"name": "floor", "value": 1000}', /40 … 250/],
    ['a constant that the policy does not have', '{"name": "flor", "value": 100}', /flor/],
    ['a body that is none', '{"name": "floor"}', /TUNE does not take this body/],
  ])('is refused with %s', async (_, body, reason) => {
    const room = await openControlRoom();
    await leading(room);
    await published(room);
    await room.send(command('TUNE', body));
    await room.world.clock.advanceBy(100);
    expect(room.events.at(-1)).toMatchObject({ accepted: false, reason: expect.stringMatching(reason) });
    expect(await room.pointer()).toMatchObject({ epoch: 1 });
  });

  it('is refused where nothing is live', async () => {
    const room = await openControlRoom();
    await leading(room);
    await room.send(command('TUNE', '{"name": "floor", "value": 150}'));
    await room.world.clock.advanceBy(100);
    expect(room.events.at(-1)?.reason).toBe('nothing is live in policy/feed');
  });
});

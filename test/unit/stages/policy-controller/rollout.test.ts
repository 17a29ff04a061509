import { describe, expect, it } from 'vitest';
import { memoryMetrics } from '../../../../src/adapters/memory/metrics-query.ts';
import { makeControlEvent } from '../../../../src/contracts/records.ts';
import { DEFAULT_ROLLOUT_CONFIG } from '../../../../src/stages/policy-controller/controller-config.ts';
import { MetricPoller } from '../../../../src/stages/policy-controller/metric-poller.ts';
import { SESSION_TIMEOUT_MS } from '../../adapters/memory/bus.fixture.ts';
import { arm } from '../../core/rollout/rollout.fixture.ts';
import { codecs, topics } from '../records.fixture.ts';
import { command, GUARDRAIL, lead, openControlRoom, publish, SCOPE, told } from './controller.fixture.ts';
import {
  decisions,
  expectExplained,
  MINUTE_MS,
  type Observer,
  rolling,
  rolloutOf,
  toCanary,
} from './rollout.fixture.ts';

describe('a rollout', () => {
  it('goes to live by its stages, each at a higher epoch, with its text in the store', async () => {
    const { room } = await rolling();
    expect(await room.pointer()).toMatchObject({
      epoch: 2,
      stable: { version: 1 },
      canary: { policy: { version: 2 }, mode: 'shadow', percent: 0, leaseMs: 60_000, unit: 'bucketKey' },
    });
    expect(await room.document('feed 2')).toBe('feed 2');
    await room.world.clock.advanceBy(61 * MINUTE_MS);
    expect(decisions(room)).toEqual([
      'leadership-taken 1 0',
      'policy-published 1 1 publish-1',
      'policy-published 1 1 publish-2',
      'rollout-started 1 2 START',
      'rollout-advanced 1 3',
      'rollout-advanced 1 4',
      'rollout-advanced 1 5',
      'rollout-advanced 1 6',
      'rollout-advanced 1 7',
    ]);
    expect(await room.pointer()).toMatchObject({ epoch: 7, stable: { version: 2 } });
    expect((await room.pointer())?.canary).toBeUndefined();
    expectExplained(room);
  });

  it('waits for PROMOTE where it was not told to go on by itself', async () => {
    const scene = await rolling({ autoPromote: false });
    await scene.room.world.clock.advanceBy(30 * MINUTE_MS);
    expect(rolloutOf(scene)).toMatchObject({ stage: 0, hold: undefined });
    await scene.room.send(command('PROMOTE'));
    await scene.room.world.clock.advanceBy(100);
    expect(await scene.room.pointer()).toMatchObject({ epoch: 3, canary: { mode: 'canary', percent: 5 } });
  });

  it('that does harm is back on stable at its next look', async () => {
    const scene = await rolling();
    await toCanary(scene);
    scene.observer.change = (seen) => ({ ...seen, canary: arm(5_000, { errors: 100 }) });
    await scene.room.world.clock.advanceBy(10_000);
    expect(await scene.room.pointer()).toMatchObject({ epoch: 4, stable: { version: 1 } });
    expect((await scene.room.pointer())?.canary).toBeUndefined();
    expect(scene.room.events.at(-1)).toMatchObject({ type: 'rollout-rolled-back', actor: 'rollout' });
    expectExplained(scene.room);
  });

  it.each<[what: string, change: Observer['change']]>([
    ['an observer that says nothing', () => undefined],
    ['one that sees nothing', (seen) => ({ ...seen, stable: arm(0), canary: arm(0), shadow: undefined })],
    ['one that sees what cannot be', (seen) => ({ ...seen, canary: arm(5, { errors: 6 }) })],
  ])('is held when its telemetry stops: %s', async (_what, change) => {
    const scene = await rolling();
    await toCanary(scene);
    scene.observer.change = change;
    await scene.room.world.clock.advanceBy(30 * MINUTE_MS);
    expect(rolloutOf(scene)).toMatchObject({
      stage: 1,
      hold: { reasons: [{ code: 'statistics', text: expect.stringMatching(/no request in either arm/) }] },
    });
    await scene.room.world.clock.advanceBy(120 * MINUTE_MS);
    expect(scene.room.events.at(-1)).toMatchObject({ type: 'rollout-rolled-back' });
    expectExplained(scene.room);
  });

  it('that a policy guards by a query goes on while it answers well, and is held otherwise', async () => {
    const metrics = memoryMetrics();
    metrics.set(GUARDRAIL.query, [0.02]);
    const scene = await rolling({}, { deps: { metrics: new MetricPoller(metrics) } });
    await scene.room.send(command('ABORT', '{"reason": "unguarded"}'));
    await scene.room.send(publish(3, { body: Buffer.from('feed 3 guarded') }));
    await scene.room.send(command('START', '{"version": 3}', 'start-3'));
    await scene.room.world.clock.advanceBy(100);
    await toCanary(scene);
    metrics.set(GUARDRAIL.query, [0.001]);
    await scene.room.world.clock.advanceBy(30_000);
    expect(rolloutOf(scene).hold).toMatchObject({
      reasons: [{ code: 'external-guardrail', text: expect.stringMatching(/ctr is 0\.001, at least 0\.01/) }],
    });
    metrics.fail(GUARDRAIL.query, 'unreachable');
    await scene.room.world.clock.advanceBy(30_000);
    expect(rolloutOf(scene).hold).toMatchObject({
      reasons: [{ code: 'external-no-data', text: expect.stringMatching(/ctr: unreachable/) }],
    });
    metrics.set(GUARDRAIL.query, [0.02]);
    await scene.room.world.clock.advanceBy(61 * MINUTE_MS);
    expect(await scene.room.pointer()).toMatchObject({ stable: { version: 3 } });
    expectExplained(scene.room);
  });

  it('that a policy guards by a query is refused where there is nobody to ask', async () => {
    const scene = await rolling();
    await scene.room.send(publish(3, { body: Buffer.from('feed 3 guarded') }));
    await scene.room.world.clock.advanceBy(100);
    expect(scene.room.events.at(-1)).toMatchObject({
      type: 'command-refused',
      reason: expect.stringMatching(/guardrails query a Prometheus \(ctr\).*set controller\.prometheusUrl/),
    });
  });

  it('of a guarded policy is neither started nor let through by a controller that cannot ask', async () => {
    const metrics = memoryMetrics();
    metrics.set(GUARDRAIL.query, [0.02]);
    const scene = await rolling({}, { deps: { metrics: new MetricPoller(metrics) } });
    await scene.room.send(publish(3, { body: Buffer.from('feed 3 guarded') }));
    await scene.room.send(command('ABORT', '{"reason": "unguarded"}'));
    await scene.room.send(command('START', '{"version": 3}', 'start-3'));
    await scene.room.world.clock.advanceBy(MINUTE_MS);
    await scene.room.world.settle(scene.leading.stage.close());
    scene.leading = await scene.next();
    await scene.room.world.clock.advanceBy(SESSION_TIMEOUT_MS + MINUTE_MS);
    expect(rolloutOf(scene).hold).toMatchObject({
      reasons: [{ code: 'external-no-data', text: expect.stringMatching(/no address of a Prometheus/) }],
    });
    await scene.room.send(command('ABORT', '{"reason": "unread"}', 'abort-2'));
    await scene.room.send(command('START', '{"version": 3}', 'start-again'));
    await scene.room.world.clock.advanceBy(100);
    expect(scene.room.events.at(-1)).toMatchObject({ type: 'command-refused', commandId: 'start-again' });
    expectExplained(scene.room);
  });

  it('is held where nobody observes at all', async () => {
    const room = await openControlRoom();
    const leading = await lead(room, { config: { rollout: DEFAULT_ROLLOUT_CONFIG } });
    for (const each of [publish(1), publish(2), command('START', '{"version": 2}')]) await room.send(each);
    await room.world.clock.advanceBy(5 * MINUTE_MS);
    expect(rolloutOf({ leading }).hold).toMatchObject({ reasons: [{ code: 'no-data' }] });
  });

  it('is started by the publication itself where the configuration says so', async () => {
    const room = await openControlRoom();
    await lead(room, { config: { rollout: { ...DEFAULT_ROLLOUT_CONFIG, autoStart: true } } });
    await room.send(publish(1));
    await room.send(publish(2));
    await room.world.clock.advanceBy(100);
    expect(told(room).slice(-2)).toEqual(['policy-published 1 1 publish-2', 'rollout-started 1 2 publish-2']);
    expectExplained(room);
  });
});

describe('the lease of a canary', () => {
  it('is renewed at the same epoch at least six times as often as it lapses', async () => {
    const scene = await rolling();
    await toCanary(scene);
    let last = (await scene.room.pointer())?.canary?.beat ?? 0;
    for (let i = 0; i < 12; i += 1) {
      await scene.room.world.clock.advanceBy(10_000);
      const pointer = await scene.room.pointer();
      expect(pointer?.epoch).toBe(3);
      expect(pointer?.canary?.beat).toBeGreaterThan(last);
      last = pointer?.canary?.beat ?? 0;
    }
  });

  it('is renewed no more by a controller that died', async () => {
    const scene = await rolling();
    await toCanary(scene);
    scene.leading.bus.crash();
    await scene.room.world.clock.advanceBy(20_000);
    const pointer = await scene.room.pointer();
    await scene.room.world.clock.advanceBy(2 * MINUTE_MS);
    expect(await scene.room.pointer()).toEqual(pointer);
  });

  it('is of the leader alone: a new one writes a new epoch, and the one before cannot renew it', async () => {
    const scene = await rolling();
    await toCanary(scene);
    scene.leading.bus.disconnect();
    const second = await scene.next();
    await scene.room.world.clock.advanceBy(SESSION_TIMEOUT_MS + 30_000);
    scene.leading.bus.reconnect();
    await scene.room.world.clock.advanceBy(MINUTE_MS);
    expect(await scene.room.pointer()).toMatchObject({
      epoch: 4,
      term: 2,
      canary: { percent: 5, policy: { version: 2 } },
    });
    expect(rolloutOf({ leading: second }).stage).toBe(1);
    expectExplained(scene.room);
  });

  it('and the canary itself are in an emptied store again, with both texts', async () => {
    const scene = await rolling();
    await toCanary(scene);
    scene.room.server.empty();
    await scene.room.world.clock.advanceBy(12_000);
    expect(await scene.room.pointer()).toMatchObject({ epoch: 3, canary: { percent: 5 } });
    expect([await scene.room.document('feed 1'), await scene.room.document('feed 2')]).toEqual([
      'feed 1',
      'feed 2',
    ]);
  });
});

describe('a new leader', () => {
  it('rebuilds a running rollout from the log, and goes on with it', async () => {
    const scene = await rolling();
    await toCanary(scene);
    await scene.room.world.clock.advanceBy(5 * MINUTE_MS);
    const before = rolloutOf(scene);
    await scene.room.world.settle(scene.leading.stage.close());
    const leading = await scene.next();
    expect(rolloutOf({ leading })).toEqual(before);
    await scene.room.world.clock.advanceBy(46 * MINUTE_MS);
    expect(await scene.room.pointer()).toMatchObject({ term: 2, stable: { version: 2 } });
    expectExplained(scene.room);
  });

  it('draws the consequence that the one before saw and could not write', async () => {
    const scene = await rolling();
    await toCanary(scene);
    const { bus } = scene.leading;
    const produce = bus.produce.bind(bus);
    let looked = false;
    bus.produce = async (record) => {
      if (looked) return new Promise(() => {});
      await produce(record);
      looked = scene.observer.looks > 0 && record.value?.includes('rollout-looked') === true;
    };
    scene.observer.change = (seen) => ({ ...seen, canary: arm(5_000, { errors: 100 }) });
    await scene.room.world.clock.advanceBy(10_000);
    expect(scene.room.events.at(-1)?.type).toBe('rollout-looked');
    bus.crash();
    await scene.next();
    await scene.room.world.clock.advanceBy(SESSION_TIMEOUT_MS + 5_000);
    expect(told(scene.room).slice(-2)).toEqual(['leadership-taken 2 0', 'rollout-rolled-back 2 4']);
    expect((await scene.room.pointer())?.canary).toBeUndefined();
    expectExplained(scene.room);
  });

  it.each([
    ['counts what the one before wrote until the new term is in the log', 1, undefined],
    ['ignores what one before still writes after that', 2, { stage: 1 }],
  ])('%s', async (_what, leaders, rollout) => {
    const scene = await rolling();
    await toCanary(scene);
    const { room } = scene;
    let { stage } = scene.leading;
    for (let term = 2; term <= leaders; term += 1) {
      await room.world.settle(stage.close());
      ({ stage } = await scene.next());
    }
    await room.world.settle(stage.close());
    const late = { type: 'rollout-aborted', reason: 'late', atMs: 1, epoch: 9 };
    const cause = { commandId: 'late', scope: SCOPE, actor: 'ana' };
    const event = makeControlEvent({
      eventId: 'late',
      ...cause,
      type: late.type,
      term: 1,
      epoch: 9,
      evidence: JSON.stringify({ ...late, ...cause }),
      occurredAt: 1,
    });
    const value = codecs.for('ControlEvent').encode(event);
    const topic = topics.fixed('control-events');
    await room.world.settle(room.outside.produce({ topic, partition: 0, key: Buffer.from(SCOPE), value }));
    const last = await scene.next();
    const scopeNow = last.stage.controller.state.scopes.get(SCOPE);
    if (rollout === undefined)
      expect(scopeNow).toMatchObject({ rollout, epoch: 9, ended: { outcome: 'aborted' } });
    else expect(scopeNow).toMatchObject({ rollout });
  });

  it('that finds another one with the same term in the log takes a higher one', async () => {
    const scene = await rolling();
    await scene.room.world.settle(scene.leading.stage.close());
    const bus = scene.room.world.connect();
    const produce = bus.produce.bind(bus);
    let raced = false;
    bus.produce = async (record) => {
      if (!raced) {
        raced = true;
        const evidence = '{"type":"leadership-taken","term":2}';
        const fields = { eventId: 'term-2', scope: 'controller', actor: 'controller-2', occurredAt: 1 };
        const other = makeControlEvent({ ...fields, type: 'leadership-taken', term: 2, evidence });
        await produce({ ...record, value: codecs.for('ControlEvent').encode(other) });
      }
      return produce(record);
    };
    const leading = await scene.next({ bus });
    await scene.room.world.clock.advanceBy(1_000);
    expect(leading.stage.controller.state.term).toBe(3);
    expect(await scene.room.pointer()).toMatchObject({ term: 3 });
  });
});

/** A clock whose wall can be set. */
describe('commands of a rollout that cannot be accepted', () => {
  it.each([
    [
      'a version that was never published',
      command('START', '{"version": 9}'),
      /version 9 .* not published; published: 1, 2/,
    ],
    ['a body that is none', command('START', 'two'), /START does not take this body/],
    [
      'another version meanwhile',
      command('START', '{"version": 1}', 'again'),
      /version 2 is being rolled out/,
    ],
    [
      'a waiver of nothing',
      command('START', '{"version": 2, "waive": {"leaves": ["x"]}}', 'again'),
      /no leaf x/,
    ],
    ['a stage that does not exist', command('PROMOTE', '{"to": "ramp"}'), /PROMOTE does not take this body/],
  ])('are refused with a reason: %s', async (_what, sent, reason) => {
    const { room } = await rolling();
    await room.send({ ...sent, commandId: 'refused' });
    await room.world.clock.advanceBy(100);
    expect(room.events.at(-1)).toMatchObject({
      type: 'command-refused',
      commandId: 'refused',
      reason: expect.stringMatching(reason),
    });
    expect(await room.pointer()).toMatchObject({ epoch: 2 });
  });

  it('HOLD, START and ABORT act, and the log has their reasons', async () => {
    const { room } = await rolling();
    await room.send(command('HOLD', '{"reason": "lunch"}'));
    await room.send(command('START', '{"version": 2}', 'resume'));
    await room.send(command('ABORT', '{"reason": "enough"}'));
    await room.world.clock.advanceBy(100);
    expect(decisions(room).slice(-3)).toEqual([
      'rollout-held 1 2 HOLD',
      'rollout-resumed 1 2 resume',
      'rollout-aborted 1 3 ABORT',
    ]);
    expect(await room.pointer()).toEqual({
      epoch: 3,
      term: 1,
      stable: { digest: 'digest of feed 1', name: 'feed', version: 1 },
      canary: undefined,
    });
  });
});

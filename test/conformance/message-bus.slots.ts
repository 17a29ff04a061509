import { afterEach, beforeEach, expect, it } from 'vitest';
import type { MessageBus } from '../../src/ports/message-bus.ts';
import {
  type BusFactory,
  createTopic,
  later,
  produceTexts,
  Recorder,
  texts,
  uniqueName,
} from './message-bus.fixture.ts';
import type { CreateFactory } from './message-bus.suite.ts';

export function slotConformance(create: CreateFactory): void {
  let run: BusFactory;
  let admin: MessageBus;
  let group: string;

  beforeEach(async () => {
    run = await create();
    admin = await run.connect();
    group = uniqueName('group');
  });
  afterEach(() => run.close());

  /** A claimant of slots with a client of its own, as another process would be. */
  const claim = async (
    topic: string,
    slots: readonly number[],
    mode: 'acknowledging' | 'holding' = 'acknowledging',
    ofGroup = group,
  ): Promise<Recorder> => {
    const bus = await run.connect();
    return Recorder.subscribe(
      run,
      bus,
      { group: ofGroup, topics: [topic], startAt: 'earliest', slots },
      mode,
    );
  };

  const eventuallyOwns = (member: Recorder, slots: readonly number[]): Promise<void> =>
    run.eventually(
      () => JSON.stringify(member.partitions()) === JSON.stringify(slots),
      `a member owns the slots ${slots.join(', ')}`,
    );

  it('gives one member exactly the slots that it asked for', async () => {
    const topic = await createTopic(run, admin, 4);
    for (let p = 0; p < 4; p++) await produceTexts(run, admin, topic, p, [`p${p}`]);
    const owner = await claim(topic, [0, 2]);
    await eventuallyOwns(owner, [0, 2]);
    await run.eventually(() => owner.records.length === 2, 'the records of the slots arrived');
    await run.pass(run.quietMs);
    expect(owner.values().sort()).toEqual(['p0', 'p2']);
  });

  it('lets others join and stand by, which disturbs the owner in nothing', async () => {
    const topic = await createTopic(run, admin, 2);
    const owner = await claim(topic, [1], 'holding');
    await eventuallyOwns(owner, [1]);
    await produceTexts(run, admin, topic, 1, texts('v', 3));
    await run.eventually(() => owner.records.length === 3, 'the owner got its records');
    const standbys = [await claim(topic, [1]), await claim(topic, [1])];
    await produceTexts(run, admin, topic, 1, texts('w', 3));
    await run.eventually(() => owner.records.length >= 6, 'the owner goes on');
    await run.pass(run.quietMs);
    expect(owner.values()).toEqual([...texts('v', 3), ...texts('w', 3)]);
    expect(owner.revoked).toEqual([]);
    expect(owner.lost).toEqual([]);
    for (const standby of standbys) {
      expect(standby.partitions()).toEqual([]);
      expect(standby.records).toEqual([]);
    }
  });

  it('lets a standby take over from the last commit when the owner closes', async () => {
    const topic = await createTopic(run, admin, 3);
    for (const p of [0, 1]) await produceTexts(run, admin, topic, p, texts(`p${p}-`, 4));
    const owner = await claim(topic, [0, 1], 'holding');
    await run.eventually(() => owner.records.length === 8, 'the owner got its records');
    const standby = await claim(topic, [0, 1]);
    owner.onRevoked = async () => {
      await later(run, 50);
      owner.acknowledge('p0-0', 'p0-1', 'p1-0', 'p1-2');
    };
    await run.settle(owner.bus.close());
    await eventuallyOwns(standby, [0, 1]);
    await run.eventually(() => standby.records.length >= 5, 'the rest was delivered again');
    expect(standby.values(0)).toEqual(['p0-2', 'p0-3']);
    expect(standby.values(1)).toEqual(['p1-1', 'p1-2', 'p1-3']);
  });

  it('lets a standby take over when the owner is killed, and again when that one is', async () => {
    const topic = await createTopic(run, admin, 1);
    await produceTexts(run, admin, topic, 0, texts('v', 3));
    const owner = await claim(topic, [0], 'holding');
    await run.eventually(() => owner.records.length === 3, 'the owner got its records');
    const second = await claim(topic, [0], 'holding');
    const third = await claim(topic, [0], 'acknowledging');
    await run.settle(run.kill(owner.bus));
    await run.eventually(() => second.records.length + third.records.length >= 3, 'a standby took over');
    const [next, last] = second.records.length > 0 ? [second, third] : [third, second];
    expect(last.records).toEqual([]);
    expect(next.values()).toEqual(texts('v', 3));
    await run.settle(run.kill(next.bus));
    await eventuallyOwns(last, [0]);
    await produceTexts(run, admin, topic, 0, ['after']);
    await run.eventually(() => last.values().includes('after'), 'the last one goes on');
  });

  it('has one owner at any time, however often a slot changes hands', async () => {
    const topic = await createTopic(run, admin, 1);
    let owners = 0;
    let ownersMost = 0;
    const members = new Set<Recorder>();
    for (let i = 0; i < 4; i++) {
      const options = { group, topics: [topic], startAt: 'earliest', slots: [0] } as const;
      const member = await Recorder.subscribe(run, await run.connect(), options, 'acknowledging', (owns) => {
        owners += owns ? 1 : -1;
        ownersMost = Math.max(ownersMost, owners);
      });
      member.onRevoked = () => later(run, 30);
      members.add(member);
    }
    while (members.size > 0) {
      await run.eventually(() => [...members].some((member) => member.partitions().length === 1), 'an owner');
      for (const member of members) {
        if (member.partitions().length !== 1) continue;
        members.delete(member);
        await run.settle(member.bus.close());
        break;
      }
    }
    expect(ownersMost).toBe(1);
    expect(owners).toBe(0);
  });

  it('does not disturb the owners of other slots when members come, leave or die', async () => {
    const topic = await createTopic(run, admin, 3);
    const groups = [uniqueName('slot0'), uniqueName('slot1')] as const;
    const bystander = await claim(topic, [0], 'holding', groups[0]);
    const leaver = await claim(topic, [1], 'acknowledging', groups[1]);
    await eventuallyOwns(bystander, [0]);
    await eventuallyOwns(leaver, [1]);
    await produceTexts(run, admin, topic, 0, texts('before', 3));
    await run.eventually(() => bystander.records.length === 3, 'the bystander got its records');

    const standby = await claim(topic, [1], 'acknowledging', groups[1]);
    await run.settle(leaver.bus.close());
    await eventuallyOwns(standby, [1]);
    await run.settle(run.kill(standby.bus));
    const last = await claim(topic, [1], 'acknowledging', groups[1]);
    await eventuallyOwns(last, [1]);

    await produceTexts(run, admin, topic, 0, texts('after', 3));
    await run.eventually(() => bystander.records.length >= 6, 'the bystander goes on');
    expect(bystander.values()).toEqual([...texts('before', 3), ...texts('after', 3)]);
    expect(bystander.assigned).toHaveLength(1);
    expect(bystander.revoked).toEqual([]);
    expect(bystander.lost).toEqual([]);
  });
}

import { afterEach, beforeEach, expect, it } from 'vitest';
import type { InboundRecord, MessageBus } from '../../src/ports/message-bus.ts';
import {
  createTopic,
  eventuallyCommitted,
  produceTexts,
  Recorder,
  texts,
  uniqueName,
} from './message-bus.fixture.ts';
import type { CreateFactory, RestartableBusFactory } from './message-bus.suite.ts';

export function restartConformance(create: CreateFactory<RestartableBusFactory>): void {
  let run: RestartableBusFactory;
  let bus: MessageBus;

  beforeEach(async () => {
    run = await create();
    bus = await run.connect();
  });
  afterEach(() => run.close());

  const restart = async (): Promise<void> => {
    await run.settle(run.stopBroker());
    await run.pass(3 * run.quietMs);
    await run.settle(run.startBroker());
  };

  it('keeps what is produced pending while the broker is away, and stores it afterwards in order', async () => {
    const topic = await createTopic(run, bus, 1);
    await produceTexts(run, bus, topic, 0, ['before']);
    await run.settle(run.stopBroker());
    let settled = 0;
    const produced = texts('v', 20).map((value) =>
      bus.produce({ topic, partition: 0, key: null, value: Buffer.from(value) }).finally(() => {
        settled++;
      }),
    );
    await run.pass(3 * run.quietMs);
    expect(settled).toBe(0);
    await run.settle(run.startBroker());
    await run.settle(Promise.all(produced));
    const records: InboundRecord[] = [];
    await run.settle(bus.read({ topics: [topic], startAt: 'earliest' }, (batch) => records.push(...batch)));
    await run.eventually(() => records.length >= 21, 'all records were stored');
    expect(records.map(({ value }) => value?.toString())).toEqual(['before', ...texts('v', 20)]);
  });

  it('goes on reading after the restart, with nothing left out and nothing twice', async () => {
    const topic = await createTopic(run, bus, 1);
    const records: InboundRecord[] = [];
    await run.settle(bus.read({ topics: [topic], startAt: 'latest' }, (batch) => records.push(...batch)));
    await produceTexts(run, bus, topic, 0, texts('before', 5));
    await restart();
    await produceTexts(run, bus, topic, 0, texts('after', 5));
    await run.eventually(() => records.length >= 10, 'all records arrived');
    expect(records.map(({ value }) => value?.toString())).toEqual([
      ...texts('before', 5),
      ...texts('after', 5),
    ]);
  });

  it('goes on delivering to groups, and commits what was acknowledged meanwhile', async () => {
    const topic = await createTopic(run, bus, 1);
    const group = uniqueName('group');
    const recorder = await Recorder.subscribe(
      run,
      bus,
      { group, topics: [topic], startAt: 'earliest' },
      'holding',
    );
    await produceTexts(run, bus, topic, 0, texts('before', 5));
    await run.eventually(() => recorder.records.length === 5, 'the first records arrived');
    await run.settle(run.stopBroker());
    await run.pass(3 * run.quietMs);
    recorder.acknowledging = true;
    recorder.acknowledge(...texts('before', 5));
    await run.settle(run.startBroker());
    await produceTexts(run, bus, topic, 0, texts('after', 5));
    await run.eventually(() => new Set(recorder.values()).size === 10, 'the later records arrived');
    await eventuallyCommitted(run, bus, group, topic, [10]);
  });

  it('tells by the age of the last fetch that the broker is away', async () => {
    const topic = await createTopic(run, bus, 1);
    const recorder = await Recorder.subscribe(
      run,
      bus,
      { group: uniqueName('group'), topics: [topic], startAt: 'earliest' },
      'acknowledging',
    );
    await run.eventually(() => recorder.partitions().length === 1, 'the partition was assigned');
    await run.settle(run.stopBroker());
    await run.pass(3 * run.quietMs);
    expect(recorder.subscription.sinceLastFetchMs()).toBeGreaterThanOrEqual(2 * run.quietMs);
    await run.settle(run.startBroker());
    await run.eventually(
      () => recorder.subscription.sinceLastFetchMs() < run.quietMs,
      'fetches are answered again',
    );
  });
}

import { expect, it } from 'vitest';
import type { MemoryConnection } from '../../../src/adapters/memory/bus.ts';
import { memorySchemaRegistry } from '../../../src/adapters/registry/memory.ts';
import { createCodecs } from '../../../src/contracts/codec.ts';
import { makeOutcome, type Outcome } from '../../../src/contracts/records.ts';
import { TOPICS, topicNames } from '../../../src/contracts/topics.ts';
import { createTopicDelay } from '../../../src/core/latency/topic-delay.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import type { InboundRecord } from '../../../src/ports/message-bus.ts';
import { createDeadLetters } from '../../../src/stages/dead-letters.ts';
import { createResultWriter } from '../../../src/stages/results.ts';
import { runStage } from '../../../src/stages/run-stage.ts';
import { MemoryWorld } from '../adapters/memory/bus.fixture.ts';

const topics = topicNames('test');
const SOURCE = topics.fixed('outcomes');
const DEAD = topics.deadLetter(SOURCE);
const RESULTS = topics.fixed('scored-results');
const OUT = 'out';
const SMALL = { 'max.message.bytes': '2000' };
const LARGE = { 'max.message.bytes': '20000' };

interface Rig {
  world: MemoryWorld;
  bus: MemoryConnection;
  send(value: Buffer): Promise<void>;
  /** Waits until what was sent is committed. */
  advanced(): Promise<void>;
  stored(topic: string): Promise<InboundRecord[]>;
}

/** A stage that passes on what it reads, on topics that take records of such sizes. */
async function start(configs: Record<string, Record<string, string>>): Promise<Rig> {
  const world = new MemoryWorld();
  const bus = world.connect();
  for (const [topic, config] of Object.entries(configs)) await world.createTopic(bus, 1, config, topic);
  const codecs = createCodecs({ registry: memorySchemaRegistry(), clock: world.clock });
  await codecs.register([
    [SOURCE, TOPICS.outcomes],
    [RESULTS, TOPICS['scored-results']],
  ]);
  const deadLetters = createDeadLetters<Outcome>({
    stage: 'test',
    topics,
    results: createResultWriter(codecs.for('ScoredResult'), RESULTS, 1),
    payload: 'full',
    partitionsOf: () => 1,
    requestOf: ({ requestId }) => ({ requestId, resultPartition: null }),
  });
  const { clock, telemetry } = world;
  const deps = { bus, codecs, topics, clock, telemetry, random: seededRandom(1) };
  await world.settle(
    runStage<Outcome>(
      { ...deps, topicDelay: createTopicDelay() },
      {
        name: 'test',
        subscription: { group: 'test', topics: [SOURCE], startAt: 'earliest' },
        codec: codecs.for('Outcome'),
        tries: 1,
        handle: ({ record, finish }) =>
          finish([
            { topic: OUT, partition: 0, key: null, value: record.value },
            { topic: RESULTS, partition: 0, key: Buffer.from('passed on'), value: null },
          ]),
        deadLetters,
      },
    ),
  );
  let sent = 0;
  return {
    world,
    bus,
    async send(value) {
      sent += 1;
      await world.settle(bus.produce({ topic: SOURCE, partition: 0, key: Buffer.from('r1'), value }));
    },
    async advanced() {
      for (let turn = 0; turn < 60; turn += 1) {
        if ((await world.settle(bus.admin.committed('test', SOURCE))).get(0) === sent) return;
        await world.clock.advanceBy(1_000);
      }
      throw new Error('the partition does not advance');
    },
    async stored(topic) {
      const records: InboundRecord[] = [];
      const reader = await world.settle(
        bus.read({ topics: [topic], startAt: 'earliest' }, (batch) => records.push(...batch)),
      );
      await world.settle(reader.caughtUp);
      await world.settle(reader.close());
      return records;
    },
  };
}

async function outcomeOf(bytes: number): Promise<Buffer> {
  const registry = memorySchemaRegistry();
  const codecs = createCodecs({ registry, clock: new MemoryWorld().clock });
  await codecs.register([[SOURCE, TOPICS.outcomes]]);
  return codecs
    .for('Outcome')
    .encode(
      makeOutcome({ outcomeId: 'x'.repeat(bytes), requestId: 'r1', type: 'CLICK', reward: 1, occurredAt: 0 }),
    );
}

it('an output that is too large for its topic makes a dead letter of the record', async () => {
  const rig = await start({ [SOURCE]: LARGE, [DEAD]: LARGE, [RESULTS]: LARGE, [OUT]: SMALL });
  const value = await outcomeOf(5_000);
  await rig.send(value);
  await rig.advanced();
  const [letter, ...others] = await rig.stored(DEAD);
  expect(others).toEqual([]);
  expect(letter?.value).toEqual(value);
  expect(letter?.headers['__connect.errors.exception.class.name']?.toString()).toBe('millrace.TOO_LARGE');
});

it('a dead letter that is too large for its topic keeps a digest, is told once, and the partition goes on', async () => {
  const rig = await start({ [SOURCE]: LARGE, [DEAD]: SMALL, [RESULTS]: LARGE, [OUT]: LARGE });
  await rig.send(Buffer.alloc(5_000, 'not a frame'));
  await rig.advanced();
  const [letter, ...others] = await rig.stored(DEAD);
  expect(others).toEqual([]);
  expect(letter?.value?.toString()).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(letter?.key?.toString()).toBe('r1');
  expect(letter?.headers['millrace.value.digest']?.toString()).toBe('sha256');
  expect(await rig.stored(RESULTS)).toHaveLength(1);
});

it('what was stored is not sent again with what was refused', async () => {
  const rig = await start({ [SOURCE]: LARGE, [DEAD]: LARGE, [RESULTS]: LARGE });
  await rig.send(await outcomeOf(10));
  await rig.world.clock.advanceBy(3_000);
  expect(await rig.stored(RESULTS)).toHaveLength(1);
  await rig.world.createTopic(rig.bus, 1, LARGE, OUT);
  await rig.advanced();
  expect(await rig.stored(OUT)).toHaveLength(1);
  expect(await rig.stored(RESULTS)).toHaveLength(1);
});

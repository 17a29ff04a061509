import type { MemoryConnection } from '../../../src/adapters/memory/bus.ts';
import { memorySchemaRegistry } from '../../../src/adapters/memory/schema-registry.ts';
import { createCodecs } from '../../../src/contracts/codec.ts';
import { makeOutcome, type Outcome } from '../../../src/contracts/records.ts';
import { TOPICS, topicNames } from '../../../src/contracts/topics.ts';
import { createTopicDelay } from '../../../src/core/latency/topic-delay.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import type { Headers, InboundRecord, OutboundRecord } from '../../../src/ports/message-bus.ts';
import { createDeadLetters } from '../../../src/stages/dead-letters.ts';
import { createResultWriter } from '../../../src/stages/results.ts';
import { type RunningStage, runStage } from '../../../src/stages/run-stage.ts';
import { MemoryWorld } from '../adapters/memory/bus.fixture.ts';

const topics = topicNames('test');
export const SOURCE = topics.fixed('outcomes');
export const DEAD = topics.deadLetter(SOURCE);
export const RESULTS = topics.fixed('scored-results');
export const OUT = 'out';
export const SMALL = { 'max.message.bytes': '2000' };
export const LARGE = { 'max.message.bytes': '20000' };

export interface PassingStage {
  world: MemoryWorld;
  bus: MemoryConnection;
  send(value: Buffer, headers?: Headers): Promise<void>;
  /** Waits until what was sent is committed. */
  advanced(): Promise<void>;
  stored(topic: string): Promise<InboundRecord[]>;
  readonly stage: RunningStage;
}

/** A stage that passes on what it reads, on topics that take records of such sizes. */
export async function startPassingStage(
  configs: Record<string, Record<string, string>>,
  outputs: (value: Buffer | null) => OutboundRecord[] = (value) => [
    { topic: OUT, partition: 0, key: null, value },
    { topic: RESULTS, partition: 0, key: Buffer.from('passed on'), value: null },
  ],
): Promise<PassingStage> {
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
  const stage = await world.settle(
    runStage<Outcome>(
      { ...deps, topicDelay: createTopicDelay() },
      {
        name: 'test',
        subscription: { group: 'test', topics: [SOURCE], startAt: 'earliest' },
        codec: codecs.for('Outcome'),
        tries: 1,
        handle: ({ record, finish }) => finish(outputs(record.value)),
        deadLetters,
      },
    ),
  );
  let sent = 0;
  return {
    world,
    bus,
    stage,
    async send(value, headers = {}) {
      sent += 1;
      await world.settle(
        bus.produce({ topic: SOURCE, partition: 0, key: Buffer.from('r1'), value, headers }),
      );
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

/** A record value of an outcome with an id of so many bytes. */
export async function outcomeOf(bytes: number): Promise<Buffer> {
  const registry = memorySchemaRegistry();
  const codecs = createCodecs({ registry, clock: new MemoryWorld().clock });
  await codecs.register([[SOURCE, TOPICS.outcomes]]);
  return codecs
    .for('Outcome')
    .encode(
      makeOutcome({ outcomeId: 'x'.repeat(bytes), requestId: 'r1', type: 'CLICK', reward: 1, occurredAt: 0 }),
    );
}

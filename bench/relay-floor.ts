/**
 * What a relay over Kafka costs at best, bare and through the bus: three consume-produce hops and a last consumer in one process, topics
 * of 4 partitions, acks=all.
 *
 *   node bench/relay-floor.ts --brokers 127.0.0.1:9092                        every variant, each in its own process
 *   node bench/relay-floor.ts --brokers … --variant bus-kafkajs --bytes 2048  one of them
 *
 * Variants: `bare-kafkajs` (patched as the adapter patches it; a fetched batch is sent on as it is, then committed), `bus-kafkajs`,
 * `bus-platformatic` (the port, record by record). Throughput: a backlog of `--count` records, from the first delivery of the first hop to the
 * last of the last one. Latency: records at 200/s, from before `produce` to the last consumer. CPU: of this process, per record.
 */
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import kafkajs, { type Consumer } from 'kafkajs';
import { createKafkaBus } from '../src/adapters/kafka/bus.ts';
import { applyPatches } from '../src/adapters/kafka/kafkajs/patches.ts';
import type { MessageBus } from '../src/ports/message-bus.ts';
import type { Logger, Telemetry } from '../src/ports/telemetry.ts';

const VARIANTS = ['bare-kafkajs', 'bus-kafkajs', 'bus-platformatic'] as const;
type Variant = (typeof VARIANTS)[number];

const PARTITIONS = 4;
const HOPS = 3;
const RATE_PER_SECOND = 200;
const LATENCY_SECONDS = 8;
const WARM_UP_RECORDS = 200;

const { values: args } = parseArgs({
  options: {
    brokers: { type: 'string', default: '127.0.0.1:9092' },
    variant: { type: 'string' },
    bytes: { type: 'string' },
    count: { type: 'string' },
  },
});
const brokers = args.brokers.split(',');

interface Relay {
  /** Sends one record into the first topic. */
  send(partition: number, value: Buffer): Promise<void>;
  stop(): Promise<void>;
}

/** Called with the values that arrive; the first argument tells the hop. */
type OnValues = (hop: number, values: readonly Buffer[]) => void;

async function relayBare(topics: readonly string[], onValues: OnValues): Promise<Relay> {
  applyPatches();
  const kafka = new kafkajs.Kafka({ clientId: 'bench', brokers, logLevel: kafkajs.logLevel.NOTHING });
  const producer = kafka.producer({
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
  });
  await producer.connect();
  const consumers: Consumer[] = [];
  for (const [hop, topic] of topics.entries()) {
    const next = topics[hop + 1];
    const own = new kafkajs.Kafka({ clientId: 'bench', brokers, logLevel: kafkajs.logLevel.NOTHING });
    const consumer = own.consumer({
      groupId: `${topic}-group`,
      maxWaitTimeInMs: 100,
      minBytes: 1,
      maxBytes: 8 * 2 ** 20,
    });
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    const joined = new Promise<void>((resolve) => {
      consumer.on(consumer.events.GROUP_JOIN, () => resolve());
    });
    await consumer.run({
      autoCommitInterval: 100,
      partitionsConsumedConcurrently: PARTITIONS,
      eachBatch: async ({ batch }) => {
        onValues(
          hop,
          batch.messages.flatMap(({ value }) => (value === null ? [] : [value])),
        );
        if (next === undefined) return;
        const messages = batch.messages.map(({ key, value }) => ({ key, value, partition: batch.partition }));
        await producer.send({ topic: next, messages, acks: -1 });
      },
    });
    await joined;
    consumers.push(consumer);
  }
  return {
    send: async (partition, value) => {
      await producer.send({ topic: topics[0] ?? '', messages: [{ key: null, value, partition }], acks: -1 });
    },
    stop: async () => {
      await Promise.all(consumers.map((consumer) => consumer.disconnect()));
      await producer.disconnect();
    },
  };
}

async function relayThroughBus(
  bus: MessageBus,
  topics: readonly string[],
  onValues: OnValues,
): Promise<Relay> {
  for (const [hop, topic] of topics.entries()) {
    const next = topics[hop + 1];
    const subscription = await bus.subscribe(
      { group: `${topic}-group`, topics: [topic], startAt: 'earliest', unacknowledgedMax: 10_000 },
      {
        onRecords(records) {
          onValues(
            hop,
            records.flatMap(({ value }) => (value === null ? [] : [value])),
          );
          for (const record of records) {
            if (next === undefined) subscription.acknowledge(record);
            else {
              const { key, value, partition } = record;
              bus
                .produce({ topic: next, partition, key, value })
                .then(() => subscription.acknowledge(record), fail);
            }
          }
        },
        onError: console.error,
      },
    );
  }
  const [first = ''] = topics;
  return {
    send: (partition, value) => bus.produce({ topic: first, partition, key: null, value }),
    stop: () => bus.close(),
  };
}

function fail(error: unknown): never {
  console.error(error);
  process.exit(1);
}

async function run(variant: Variant, bytes: number, count: number): Promise<void> {
  const bus = await createKafkaBus({
    client: variant === 'bus-platformatic' ? 'platformatic' : 'kafkajs',
    brokers,
    clientId: 'bench',
    drainTimeoutMs: 2_000,
    sessionTimeoutMs: 10_000,
    telemetry: silentTelemetry(),
  });
  const topics = Array.from({ length: HOPS + 1 }, (_, hop) => `bench-${hop}-${randomUUID().slice(0, 8)}`);
  await bus.admin.createTopics(
    topics.map((name) => ({ name, partitions: PARTITIONS, replication: 1, config: {} })),
  );
  await Promise.all(
    Array.from({ length: count }, (_, i) =>
      bus.produce({ topic: topics[0] ?? '', partition: i % PARTITIONS, key: null, value: makeValue(bytes) }),
    ),
  );

  let startedAt = 0;
  let cpuAtStart = process.cpuUsage();
  let arrived = 0;
  const latenciesMs: number[] = [];
  const all = Promise.withResolvers<void>();
  const onValues: OnValues = (hop, values) => {
    if (hop === 0 && startedAt === 0) {
      startedAt = performance.now();
      cpuAtStart = process.cpuUsage();
    }
    if (hop !== HOPS) return;
    arrived += values.length;
    if (arrived === count) all.resolve();
    if (arrived <= count) return;
    const now = performance.now();
    for (const value of values) latenciesMs.push(now - value.readDoubleLE(0));
  };
  const relay =
    variant === 'bare-kafkajs'
      ? await relayBare(topics, onValues)
      : await relayThroughBus(bus, topics, onValues);
  await all.promise;
  const seconds = (performance.now() - startedAt) / 1_000;
  const cpu = process.cpuUsage(cpuAtStart);

  await measureLatency(relay, bytes, latenciesMs);
  const sorted = latenciesMs.slice(WARM_UP_RECORDS).sort((a, b) => a - b);
  console.log(
    JSON.stringify({
      variant,
      bytes,
      count,
      recordsPerSecond: Math.round(count / seconds),
      cpuMicrosPerRecord: Math.round((cpu.user + cpu.system) / count),
      latencyMsP50: round(sorted[Math.floor(sorted.length / 2)] ?? Number.NaN),
      latencyMsP99: round(sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN),
    }),
  );
  await bus.admin.deleteTopics(topics);
  await relay.stop();
  await bus.close();
}

async function measureLatency(relay: Relay, bytes: number, arrived: readonly number[]): Promise<void> {
  const total = RATE_PER_SECOND * LATENCY_SECONDS;
  const startedAt = performance.now();
  for (let sent = 0; sent < total; ) {
    const due = Math.min(total, Math.ceil(((performance.now() - startedAt) / 1_000) * RATE_PER_SECOND));
    for (; sent < due; sent++) relay.send(sent % PARTITIONS, makeValue(bytes)).catch(fail);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  while (arrived.length < total) await new Promise((resolve) => setTimeout(resolve, 10));
}

function makeValue(bytes: number): Buffer {
  const value = Buffer.alloc(bytes, 7);
  value.writeDoubleLE(performance.now(), 0);
  return value;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function silentTelemetry(): Telemetry {
  const ignore = () => undefined;
  const logger: Logger = {
    debug: ignore,
    info: ignore,
    warn: ignore,
    error: console.error,
    child: () => logger,
  };
  return {
    logger,
    counter: () => ({ add: ignore }),
    gauge: () => ({ set: ignore }),
    histogram: () => ({ observe: ignore }),
  };
}

if (args.variant === undefined) {
  for (const bytes of [2_048, 32_768]) {
    for (const variant of VARIANTS) {
      const options = ['--brokers', args.brokers, '--variant', variant, '--bytes', String(bytes)];
      spawnSync(process.execPath, [import.meta.filename, ...options], { stdio: 'inherit' });
    }
  }
} else {
  const variant = VARIANTS.find((each) => each === args.variant) ?? fail(`unknown variant ${args.variant}`);
  const bytes = Number(args.bytes ?? 2_048);
  await run(variant, bytes, Number(args.count ?? (bytes > 10_000 ? 4_000 : 30_000)));
}

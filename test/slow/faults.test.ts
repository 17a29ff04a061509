import { ConfigResourceTypes, Kafka, logLevel } from 'kafkajs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { partitionForKey } from '../../src/core/request/partition.ts';
import type { Stack } from '../../src/local-stack/stack.ts';
import { startStack } from '../../src/local-stack/start-stack.ts';
import { generatedArrivals } from '../../src/traffic/arrivals.ts';
import { readCatalogue } from '../../src/traffic/catalogue.ts';
import { type Driven, drive } from '../../src/traffic/drive.ts';
import { type OutsideLedger, openOutsideLedger } from '../../src/traffic/outside-ledger.ts';
import { createRequestMaker } from '../../src/traffic/request-maker.ts';
import { openSender } from '../../src/traffic/send-requests.ts';
import { eventually, type RealPipeline, startRealPipeline } from './real-pipeline.ts';

const RATE_PER_SECOND = 60;
const DRAIN_MS = 15_000;
const catalogue = readCatalogue('models/catalogue');

let stack: Stack;
let pipeline: RealPipeline;
let runs = 0;

beforeAll(async () => {
  stack = await startStack();
  pipeline = await startRealPipeline(stack.environment);
});

afterAll(async () => {
  await pipeline?.close();
  await stack?.stop();
});

/** Traffic in the background, and the books of it. */
interface Load {
  ledger: OutsideLedger;
  /** Ends the traffic, drains, and answers what became of it. */
  end(): Promise<ReturnType<OutsideLedger['summary']> & { refused: number }>;
}

async function startLoad(deadlineMs = 60_000): Promise<Load> {
  runs += 1;
  const random = seededRandom(runs);
  const ledger = await openOutsideLedger(pipeline.client);
  const stop = new AbortController();
  const driving: Promise<Driven> = drive({
    arrivals: generatedArrivals(
      { ratePerSecond: RATE_PER_SECOND, candidatesMax: 32, historyRowsMax: 8 },
      random.stream('arrivals'),
    ),
    maker: createRequestMaker(catalogue, random.stream('requests'), { deadlineMs }),
    clock: pipeline.client.clock,
    idPrefix: `run${runs}-`,
    send: await openSender(pipeline.client),
    requestsMax: Number.POSITIVE_INFINITY,
    durationMs: Number.POSITIVE_INFINITY,
    signal: stop.signal,
  });
  const finish = async (): Promise<Awaited<ReturnType<Load['end']>>> => {
    stop.abort();
    const { refused } = await driving;
    await ledger.drained(120_000);
    const summary = ledger.summary();
    await ledger.close();
    return { ...summary, refused };
  };
  let finished: ReturnType<typeof finish> | undefined;
  return {
    ledger,
    end() {
      finished ??= finish();
      return finished;
    },
  };
}

/** Counts results until so many more have come: the pipeline works. */
async function moreResults(ledger: OutsideLedger, more: number): Promise<void> {
  const answered = (): number => ledger.summary().ingress - ledger.summary().inFlight;
  const before = answered();
  await eventually(() => answered() >= before + more, `${more} more results`, 120_000);
}

function expectAllScored(summary: Awaited<ReturnType<Load['end']>>): void {
  expect(summary).toMatchObject({
    inFlight: 0,
    duplicatesVisible: 0,
    unknown: 0,
    balanced: true,
    refused: 0,
  });
  expect(summary.outcomes.scored).toBe(summary.ingress);
  expect(summary.ingress).toBeGreaterThan(0);
}

/** Makes a topic refuse what is produced to it (one replica where two are demanded), or accept it again; waits until the broker does so. */
async function demandReplicas(topic: string, replicas: 1 | 2): Promise<void> {
  const kafka = new Kafka({
    clientId: 'test-admin',
    brokers: [...stack.kafkaBrokers],
    logLevel: logLevel.NOTHING,
    retry: { retries: 0 },
  });
  const admin = kafka.admin();
  await admin.connect();
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
  });
  const kept = (resources[0]?.configEntries ?? []).filter(
    ({ isDefault, configName }) => !isDefault && configName !== 'min.insync.replicas',
  );
  const configEntries = [
    ...kept.map(({ configName, configValue }) => ({ name: configName, value: configValue })),
    { name: 'min.insync.replicas', value: String(replicas) },
  ];
  await admin.alterConfigs({
    validateOnly: false,
    resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }],
  });
  await eventually(async () => {
    const described = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
    });
    return (
      described.resources[0]?.configEntries.some(
        ({ configName, configValue }) =>
          configName === 'min.insync.replicas' && configValue === String(replicas),
      ) ?? false
    );
  }, `${topic} demands ${replicas} replicas`);
  await admin.disconnect();
}

/** Appends a record that nobody can read; answers its offset. */
async function sendGarbage(partition: number): Promise<number> {
  const { bus, topics } = pipeline.client;
  const key = `garbage-${runs}`;
  let offset = -1;
  const reader = await bus.read(
    { topics: [topics.ingress()], partitions: [partition], startAt: 'latest' },
    (records) => {
      for (const record of records) if (record.key?.toString() === key) offset = record.offset;
    },
  );
  await bus.produce({
    topic: topics.ingress(),
    partition,
    key: Buffer.from(key),
    value: Buffer.from('no frame'),
  });
  await eventually(() => offset >= 0, 'the garbage is read back');
  await reader.close();
  return offset;
}

describe('faults on real processes', () => {
  let load: Load;
  beforeEach(async () => {
    load = await startLoad();
    await moreResults(load.ledger, 30);
  });

  afterEach(async () => {
    await load.end();
  });

  it('row 6: Redis down: routing goes on with what is known, no request errors', async () => {
    await stack.stopRedis();
    await moreResults(load.ledger, 200);
    await stack.startRedis();
    await moreResults(load.ledger, 50);
    expectAllScored(await load.end());
  });

  it('row 24: dead-letter topic unavailable: nothing past the poison is committed, and all goes on when it is back', async () => {
    const { bus, topics } = pipeline.client;
    const ingress = topics.ingress();
    await demandReplicas(topics.deadLetter(ingress), 2);
    const offset = await sendGarbage(0);
    await moreResults(load.ledger, 100);
    const committed = await bus.admin.committed(`${topics.prefix}.feature-extractor`, ingress);
    expect(committed.get(0) ?? -1).toBeLessThanOrEqual(offset);
    await demandReplicas(topics.deadLetter(ingress), 1);
    const summary = await load.end();
    expect(summary).toMatchObject({
      inFlight: 0,
      balanced: true,
      outcomes: { deadLettered: 1, scored: summary.ingress - 1 },
    });
    await eventually(
      async () =>
        ((await bus.admin.committed(`${topics.prefix}.feature-extractor`, ingress)).get(0) ?? -1) > offset,
      'the commit passes the poison',
    );
  });

  it('row 26: rebalance mid-batch: members come and go under load, nothing is lost and nothing is visible twice', async () => {
    await pipeline.kill('extractor');
    await pipeline.start('extractor');
    await moreResults(load.ledger, 100);
    expectAllScored(await load.end());
  });

  it.each(['extractor', 'router', 'worker-1', 'worker-2'])(
    'row 34: SIGTERM to the %s: drained within 10 s, nothing lost',
    async (name) => {
      const victim = pipeline.process(name);
      const at = Date.now();
      victim.kill('SIGTERM');
      expect(await victim.ended).toBe(0);
      expect(Date.now() - at).toBeLessThan(DRAIN_MS);
      await pipeline.start(name);
      await moreResults(load.ledger, 50);
      expectAllScored(await load.end());
    },
  );

  it('row 35: schema registry down: known schemas go on; an unknown id waits and is no dead letter for it', async () => {
    const { bus, topics } = pipeline.client;
    await stack.stopRegistry();
    await moreResults(load.ledger, 100);
    const unknown = Buffer.concat([Buffer.from([0, 0, 0x0f, 0xff, 0xff]), Buffer.from('body')]);
    await bus.produce({
      topic: topics.ingress(),
      partition: partitionForKey(Buffer.from('unknown'), 4),
      key: Buffer.from('unknown'),
      value: unknown,
    });
    await moreResults(load.ledger, 100);
    expect(load.ledger.summary().outcomes.deadLettered).toBe(0);
    await stack.startRegistry();
    const summary = await load.end();
    expect(summary).toMatchObject({
      inFlight: 0,
      balanced: true,
      outcomes: { deadLettered: 1, scored: summary.ingress - 1 },
    });
  });

  it.each(['features', 'scored-results'] as const)(
    'row 37: produce to %s refused (not enough replicas): back-pressure, ingress is not committed past it, recovers by itself',
    async (key) => {
      const topic = pipeline.client.topics.fixed(key);
      await demandReplicas(topic, 2);
      await eventually(() => load.ledger.summary().inFlight > RATE_PER_SECOND, 'requests pile up');
      await demandReplicas(topic, 1);
      expectAllScored(await load.end());
    },
  );

  it('row 27: broker restart with all stages running: recovers by itself, nothing lost', async () => {
    await stack.restartBroker(0);
    await moreResults(load.ledger, 100);
    const summary = await load.end();
    expect(summary).toMatchObject({ inFlight: 0, duplicatesVisible: 0, balanced: true });
    expect(summary.outcomes.scored).toBe(summary.ingress);
  });
});

import { ConfigResourceTypes, Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Stack } from '../../src/local-stack/stack.ts';
import { startStack } from '../../src/local-stack/start-stack.ts';
import { expectAllScored, moreResults, startLoad } from './load.ts';
import { eventually, type RealPipeline, startRealPipeline } from './real-pipeline.ts';

let stack: Stack;
let pipeline: RealPipeline;

beforeAll(async () => {
  stack = await startStack({ brokers: 3 });
  pipeline = await startRealPipeline(stack.environment, { environment: { MILLRACE_KAFKA_REPLICATION: '3' } });
});

afterAll(async () => {
  await pipeline?.close();
  await stack?.stop();
});

/** Every replica must store what this topic takes: with one broker down it refuses, while the others go on. */
async function demandAllReplicas(topic: string): Promise<void> {
  const admin = new Kafka({
    clientId: 'test-admin',
    brokers: [...stack.kafkaBrokers],
    logLevel: logLevel.NOTHING,
  }).admin();
  await admin.connect();
  const configEntries = [
    { name: 'min.insync.replicas', value: '3' },
    { name: 'message.timestamp.type', value: 'LogAppendTime' },
    { name: 'max.message.bytes', value: '1572864' },
  ];
  await admin.alterConfigs({
    validateOnly: false,
    resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }],
  });
  await admin.disconnect();
}

it('row 37: produce refused (not enough replicas): back-pressure, ingress is not committed past what is stored, recovers by itself', async () => {
  const { bus, topics } = pipeline.client;
  const features = topics.fixed('features');
  const group = `${topics.prefix}.feature-extractor`;
  await demandAllReplicas(features);
  const load = await startLoad(pipeline.client);
  await moreResults(load.ledger, 100);
  await stack.killBroker(2);
  // Nothing passes the refusing topic: what was on its way ends, what is new piles up on ingress, uncommitted.
  const highs = async (topic: string): Promise<number> =>
    (await bus.admin.watermarks(topic)).reduce((sum, mark) => sum + mark.high, 0);
  const committed = async (): Promise<number> =>
    [...(await bus.admin.committed(group, topics.ingress())).values()].reduce(
      (sum, offset) => sum + Math.max(0, offset),
      0,
    );
  await eventually(() => load.ledger.summary().inFlight > 120, 'requests pile up', 120_000);
  // A call may still go to the dead broker.
  let compared: { committed: number; stored: number } | undefined;
  let failure: unknown;
  await eventually(
    async () => {
      try {
        const committedSum = await committed();
        compared = { committed: committedSum, stored: await highs(features) };
      } catch (error) {
        failure = error;
      }
      return compared !== undefined;
    },
    'offsets can be read',
    60_000,
  ).catch((error: unknown) => {
    throw new Error(String(error), { cause: failure });
  });
  expect(compared?.committed).toBeLessThanOrEqual(compared?.stored ?? -1);
  await stack.startBroker(2);
  await moreResults(load.ledger, 100);
  const summary = await load.end();
  expectAllScored(summary);
  console.log(JSON.stringify(summary));
});

import { afterAll, beforeAll } from 'vitest';
import { type OwnBrokers, restartableFactory, startBrokers } from './kafka.fixture.ts';
import { messageBusRestartConformance } from './message-bus.suite.ts';

let brokers: OwnBrokers;

beforeAll(async () => {
  brokers = await startBrokers(1);
});
afterAll(() => brokers?.stop());

messageBusRestartConformance('kafkajs', async () => restartableFactory('kafkajs', brokers));
messageBusRestartConformance('@platformatic/kafka', async () => restartableFactory('platformatic', brokers));

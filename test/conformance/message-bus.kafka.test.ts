import { afterAll, beforeAll, describe } from 'vitest';
import { kafkaFactory, type OwnBrokers, restartableFactory, sharedBrokers, startBrokers } from './kafka.fixture.ts';
import { messageBusConformance, messageBusRestartConformance } from './message-bus.suite.ts';

messageBusConformance('kafkajs', async () => kafkaFactory('kafkajs', sharedBrokers()));

describe('with a broker of its own', () => {
  let brokers: OwnBrokers;
  beforeAll(async () => {
    brokers = await startBrokers(1);
  });
  afterAll(() => brokers?.stop());

  messageBusRestartConformance('kafkajs', async () => restartableFactory('kafkajs', brokers));
});

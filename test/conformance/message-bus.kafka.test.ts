import { afterAll, beforeAll, describe } from 'vitest';
import { type Client, kafkaFactory, type OwnBrokers, restartableFactory, sharedBrokers, startBrokers } from './kafka.fixture.ts';
import { messageBusConformance, messageBusRestartConformance } from './message-bus.suite.ts';

const CLIENTS: readonly Client[] = ['kafkajs', 'platformatic'];

for (const client of CLIENTS) {
  messageBusConformance(client, async () => kafkaFactory(client, sharedBrokers()));
}

describe('with a broker of its own', () => {
  let brokers: OwnBrokers;
  beforeAll(async () => {
    brokers = await startBrokers(1);
  });
  afterAll(() => brokers?.stop());

  for (const client of CLIENTS) {
    messageBusRestartConformance(client, async () => restartableFactory(client, brokers));
  }
});

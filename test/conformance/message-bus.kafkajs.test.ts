import { kafkaFactory, sharedBrokers } from './kafka.fixture.ts';
import { messageBusConformance } from './message-bus.suite.ts';

messageBusConformance('kafkajs', async () => kafkaFactory('kafkajs', sharedBrokers()));

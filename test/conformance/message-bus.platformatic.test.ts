import { kafkaFactory, sharedBrokers } from './kafka.fixture.ts';
import { messageBusConformance } from './message-bus.suite.ts';

messageBusConformance('@platformatic/kafka', async () => kafkaFactory('platformatic', sharedBrokers()));

import { describe } from 'vitest';
import { adminConformance } from './message-bus.admin.ts';
import { deliveryConformance } from './message-bus.delivery.ts';
import type { BusFactory } from './message-bus.fixture.ts';
import { groupConformance } from './message-bus.groups.ts';
import { produceConformance } from './message-bus.produce.ts';
import { readConformance } from './message-bus.read.ts';
import { restartConformance } from './message-bus.restart.ts';
import { slotConformance } from './message-bus.slots.ts';

export type { BusFactory } from './message-bus.fixture.ts';

/** Makes what one test needs; it is closed after the test. */
export type CreateFactory<Factory extends BusFactory = BusFactory> = () => Promise<Factory>;

/** A factory whose broker can be taken away. */
export interface RestartableBusFactory extends BusFactory {
  stopBroker(): Promise<void>;
  startBroker(): Promise<void>;
}

/** Every promise of the port `MessageBus`, asked of one adapter. */
export function messageBusConformance(name: string, create: CreateFactory): void {
  describe(`MessageBus on ${name}`, () => {
    describe('produce', () => produceConformance(create));
    describe('delivery and acknowledgement', () => deliveryConformance(create));
    describe('groups', () => groupConformance(create));
    describe('slots', () => slotConformance(create));
    describe('read', () => readConformance(create));
    describe('admin', () => adminConformance(create));
  });
}

/** What the port promises for a broker that goes away and comes back. */
export function messageBusRestartConformance(
  name: string,
  create: CreateFactory<RestartableBusFactory>,
): void {
  describe(`MessageBus on ${name}, while the broker restarts`, () => restartConformance(create));
}

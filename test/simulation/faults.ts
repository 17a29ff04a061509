import { makeControlCommand, type OutcomeKind } from '../../src/contracts/records.ts';
import type { RandomStream } from '../../src/ports/random.ts';
import type { Host } from '../../src/simulation/host.ts';
import { POISON_HINT } from './faulty-model.ts';
import { policyText, SLOTS } from './fleet.ts';
import { type Installation, SESSION_TIMEOUT_MS } from './installation.ts';
import { scheduleBytes, type Traffic, type TrafficOptions } from './traffic.ts';

/** Something that goes wrong, and is mended before it returns. */
export interface Fault {
  name: string;
  traffic?: Partial<TrafficOptions>;
  ownRegistry?: boolean;
  /** Nobody dies of it or loses its place, so nothing is done twice. */
  exact?: boolean;
  /** Requests may end otherwise than scored. */
  endings?: readonly OutcomeKind[];
  happen(installation: Installation, traffic: Traffic): Promise<void>;
}

/** Requests come for so long, unless the fault says otherwise. */
export const SPREAD_MS = 400;

function pick<T>(chance: RandomStream, from: readonly T[]): T {
  const picked = from[chance.below(from.length)];
  if (picked === undefined) throw new Error('there is nothing to pick from');
  return picked;
}

/** A moment in which there is traffic. */
async function underLoad(installation: Installation): Promise<void> {
  await installation.pass(20 + installation.chance.below(SPREAD_MS - 50));
}

/** Short, or long enough that a session runs out. */
function outageMs({ chance }: Installation): number {
  return chance.next() < 0.5 ? 20 + chance.below(400) : SESSION_TIMEOUT_MS + chance.below(2_000);
}

function restart(installation: Installation, { name }: Host): void {
  const [kind = '', slot] = name.split('-');
  if (kind === 'extractor') installation.startExtractor(name);
  else if (kind === 'router') installation.startRouter(name, installation.chance.below(2));
  else if (kind === 'controller') installation.startController(name);
  else installation.startWorker(kind, Number(slot), name);
}

async function crashAndRestart(installation: Installation, prefix: string): Promise<void> {
  await underLoad(installation);
  const host = pick(installation.chance, installation.up(prefix));
  installation.crash(host);
  await installation.pass(installation.chance.below(SESSION_TIMEOUT_MS));
  restart(installation, host);
}

export function publish(installation: Installation, version: number): void {
  const { client } = installation;
  const command = makeControlCommand({
    commandId: `publish-${version}`,
    scope: 'policy/sim',
    type: 'PUBLISH_POLICY',
    body: policyText(version),
    actor: 'sim',
  });
  void client.bus.produce({
    topic: client.topics.fixed('control'),
    partition: 0,
    key: null,
    value: client.codecs.for('ControlCommand').encode(command),
  });
}

export const FAULTS: readonly Fault[] = [
  { name: 'a router crashes', happen: (installation) => crashAndRestart(installation, 'router') },
  { name: 'an extractor crashes', happen: (installation) => crashAndRestart(installation, 'extractor') },
  { name: 'a worker crashes mid-batch', happen: (installation) => crashAndRestart(installation, 'cpu') },
  {
    name: 'the broker goes away',
    exact: true,
    async happen(installation) {
      await underLoad(installation);
      installation.stopBroker();
      await installation.pass(outageMs(installation));
      installation.startBroker();
    },
  },
  {
    name: 'the control store goes away, and comes back as it was, older or empty',
    exact: true,
    async happen(installation) {
      const { store, chance } = installation;
      publish(installation, 2);
      await underLoad(installation);
      const restore = store.backup();
      publish(installation, 3);
      await installation.pass(chance.below(100));
      store.stop();
      if (chance.next() < 0.5) publish(installation, 4);
      await installation.pass(chance.below(3_000));
      if (chance.next() < 0.4) store.empty();
      else if (chance.next() < 0.5) restore();
      store.loseHints(chance.next() < 0.5);
      store.start();
      await installation.pass(2_500);
    },
  },
  {
    name: 'the dead-letter topic refuses records',
    endings: ['DEAD_LETTERED'],
    async happen(installation, traffic) {
      const { broker, topics, chance } = installation;
      const bomb = Buffer.concat([Buffer.from([0, 0, 0, 0, 1]), Buffer.alloc(9, 0xff)]);
      for (let n = 0; n < 4; n += 1)
        scheduleBytes(
          installation,
          traffic,
          `garbage-${n}`,
          n % 2 ? bomb : Buffer.from('no frame'),
          SPREAD_MS,
        );
      const topic = topics.deadLetter(topics.ingress());
      await installation.pass(chance.below(SPREAD_MS / 2));
      broker.refuse(topic);
      await installation.pass(SPREAD_MS + chance.below(3_000));
      if (chance.next() < 0.5) {
        const host = pick(chance, installation.up('extractor'));
        installation.crash(host);
        restart(installation, host);
        await installation.pass(SESSION_TIMEOUT_MS + 500);
      }
      broker.accept(topic);
    },
  },
  {
    name: 'a topic on the way refuses records',
    exact: true,
    async happen(installation) {
      const { broker, topics, chance } = installation;
      const topic = pick(chance, [
        topics.fixed('features'),
        topics.dispatch('cpu'),
        topics.fixed('scored-results'),
        topics.fixed('acks'),
        topics.fixed('pool-status'),
      ]);
      await underLoad(installation);
      broker.refuse(topic);
      await installation.pass(outageMs(installation));
      broker.accept(topic);
    },
  },
  {
    name: 'extractors, routers and workers come and go',
    async happen(installation) {
      const { chance } = installation;
      const extractor = installation.startExtractor('extractor-b');
      const router = installation.startRouter('router-b', 1);
      const standby = installation.startWorker('cpu', 0, 'cpu-0-b');
      await underLoad(installation);
      for (const prefix of ['extractor', 'router', 'cpu-0']) {
        const host = pick(chance, installation.up(prefix));
        if (chance.next() < 0.3) installation.crash(host);
        else void installation.close(host);
        await installation.pass(chance.below(300));
      }
      for (const host of [extractor, router, standby])
        if (host.state === 'up' && chance.next() < 0.3) restart(installation, host);
      await installation.pass(SESSION_TIMEOUT_MS + 500);
    },
  },
  {
    name: 'a process is told to stop, and another takes its place',
    exact: true,
    async happen(installation) {
      const host = pick(installation.chance, installation.up());
      await underLoad(installation);
      const startedMs = installation.clock.monotonicMs();
      await installation.settle(installation.close(host));
      const tookMs = installation.clock.monotonicMs() - startedMs;
      if (tookMs > 10_000) installation.auditor.violations.push(`${host.name} took ${tookMs} ms to stop`);
      restart(installation, host);
    },
  },
  {
    name: 'all workers of a pool die, and come back later',
    endings: ['EXPIRED'],
    traffic: { deadlinesMs: [60, 300, 2_000, 60_000], spreadMs: 4_000 },
    async happen(installation) {
      const { chance } = installation;
      const pool = pick(chance, [...SLOTS.keys()]);
      await underLoad(installation);
      const dead = installation.up(pool);
      for (const host of dead) installation.crash(host);
      await installation.pass(2_000 + chance.below(4_000));
      for (const host of dead) restart(installation, host);
    },
  },
  {
    name: 'the controller dies, and another takes the lead',
    async happen(installation) {
      const { chance } = installation;
      installation.startController('controller-b');
      publish(installation, 2);
      await underLoad(installation);
      publish(installation, 3);
      await installation.pass(chance.below(20));
      installation.crash(pick(chance, installation.up('controller')));
      if (chance.next() < 0.5) publish(installation, 4);
      await installation.pass(SESSION_TIMEOUT_MS + 2_000);
      publish(installation, 5);
      await installation.pass(2_000);
    },
  },
  {
    name: 'the registry goes away, and a record comes in a schema that nobody knows',
    endings: ['DEAD_LETTERED'],
    ownRegistry: true,
    async happen(installation, traffic) {
      const { registry, chance } = installation;
      registry.switchOff();
      const schemaId = 1_000 + chance.below(1_000_000);
      const key = `in schema ${schemaId}`;
      const value = Buffer.alloc(9);
      value.writeInt32BE(schemaId, 1);
      scheduleBytes(installation, traffic, key, value, SPREAD_MS / 2);
      await underLoad(installation);
      if (chance.next() < 0.5) {
        const host = pick(chance, installation.up('extractor'));
        installation.startExtractor('extractor-b');
        void installation.close(host);
      }
      await installation.pass(outageMs(installation));
      if (installation.auditor.results.some(({ requestId }) => requestId === key))
        installation.auditor.violations.push(`${key}: answered though the registry is away`);
      registry.switchOn();
    },
  },
  {
    name: 'a client loses its connection, and finds it again',
    async happen(installation) {
      await underLoad(installation);
      const host = pick(installation.chance, installation.up());
      host.bus.disconnect();
      await installation.pass(outageMs(installation));
      host.bus.reconnect();
    },
  },
  {
    name: 'requests poison their batches, and the device fails now and then',
    endings: ['DEAD_LETTERED'],
    exact: true,
    traffic: {
      change: (request, n) => (n % 17 === 3 ? { ...request, hints: { [POISON_HINT]: 1 } } : request),
    },
    async happen(installation) {
      installation.flakiness = 0.1;
      await installation.pass(SPREAD_MS);
      installation.flakiness = 0;
    },
  },
];

/** Several of them, one after another and into each other. */
export const SEVERAL: Fault = {
  name: 'several of these',
  endings: ['DEAD_LETTERED', 'EXPIRED'],
  ownRegistry: true,
  traffic: { deadlinesMs: [100, 1_000, 60_000], spreadMs: 3_000, requests: 80 },
  async happen(installation, traffic) {
    const { chance } = installation;
    const faults = Array.from({ length: 2 + chance.below(2) }, () => pick(chance, FAULTS));
    for (const fault of faults) await fault.happen(installation, traffic);
  },
};

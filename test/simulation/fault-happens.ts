import { makeControlCommand } from '../../src/contracts/records.ts';
import type { Host } from '../../src/simulation/host.ts';
import type { FaultEvent, RefusingTopic, TargetName } from './fault-schedule.ts';
import { POISON_HINT } from './faulty-model.ts';
import { policyText, SLOTS } from './fleet.ts';
import type { Installation } from './installation.ts';
import { scheduleBytes, sendSoon, type Traffic } from './traffic.ts';

/** A process that is told to stop is gone within this, ms. */
const STOPPED_MS = 10_000;

/** How often it is looked at whether anybody answered what cannot be read yet. */
const UNKNOWN_LOOK_MS = 20;

/** Lets the events of one run happen, each at once and mended after its length; several of one kind may overlap. */
export class FaultHappens {
  readonly #installation: Installation;
  readonly #traffic: Traffic;
  /** How many of the events that are going on hold something down, by what that is. */
  readonly #held = new Map<string, number>();
  readonly #unknown: string[] = [];
  #version = 1;
  #names = 0;

  constructor(installation: Installation, traffic: Traffic) {
    this.#installation = installation;
    this.#traffic = traffic;
  }

  happen(event: FaultEvent): void {
    const installation = this.#installation;
    const { broker, store, registry } = installation;
    switch (event.what) {
      case 'crash':
        this.#replaceAfter(event.host, event.forMs, (host) => installation.crash(host));
        return;
      case 'stop':
        this.#replaceAfter(event.host, event.forMs, (host) => this.#stop(host));
        return;
      case 'standby':
        this.#standBy(event.host, event.forMs);
        return;
      case 'pool dies':
        for (const slot of Array.from({ length: SLOTS.get(event.pool) ?? 0 }).keys())
          this.#replaceAfter(`${event.pool}-${slot}`, event.forMs, (host) => installation.crash(host));
        return;
      case 'off the broker':
        this.#ofHost(event.host, ({ name, bus }) =>
          this.#hold(
            `broker of ${name}`,
            event.forMs,
            () => bus.disconnect(),
            () => bus.reconnect(),
          ),
        );
        return;
      case 'broker away':
        this.#hold(
          'broker',
          event.forMs,
          () => installation.stopBroker(),
          () => installation.startBroker(),
        );
        return;
      case 'topic refuses':
        for (const topic of this.#topicsOf(event.topic))
          this.#hold(
            topic,
            event.forMs,
            () => broker.refuse(topic),
            () => broker.accept(topic),
          );
        return;
      case 'store away':
        this.#storeAway(event.back, event.forMs);
        return;
      case 'hints lost':
        this.#hold(
          'hints',
          event.forMs,
          () => store.loseHints(true),
          () => store.loseHints(false),
        );
        return;
      case 'registry away':
        this.#hold(
          'registry',
          event.forMs,
          () => registry.switchOff(),
          () => registry.switchOn(),
        );
        this.#sendUnknown();
        return;
      case 'off the store':
      case 'slow deliveries':
      case 'stored twice':
      case 'delivered again':
        this.#trouble(event);
        return;
      case 'clock jumps':
        if (event.host === 'broker') installation.brokerClock.jump(event.byMs);
        else this.#ofHost(event.host, ({ clock }) => clock.jump(event.byMs));
        return;
      case 'clock drifts':
        this.#ofHost(event.host, ({ clock }) => clock.drift(event.rate));
        return;
      case 'poison':
        sendSoon(installation, this.#traffic, this.#name('poison'), (request) => ({
          ...request,
          hints: { [POISON_HINT]: 1 },
        }));
        return;
      case 'garbage':
        scheduleBytes(installation, this.#traffic, this.#name('garbage'), Buffer.from('no frame'), 0);
        return;
      case 'flaky devices':
        this.#hold(
          'devices',
          event.forMs,
          () => {
            installation.flakiness = event.share;
          },
          () => {
            installation.flakiness = 0;
          },
        );
        return;
      case 'slow devices':
        this.#slowDevices(event.pool, event.factor, event.forMs);
        return;
      case 'publish':
        this.#publish(event.kind);
        return;
      default:
        event satisfies never;
    }
  }

  /** A record in a schema that nobody knows; while the registry is away, nobody may say that there is none. */
  #sendUnknown(): void {
    const { auditor } = this.#installation;
    const name = this.#name('garbage');
    const value = Buffer.alloc(9);
    value.writeInt32BE(1_000_000 + this.#names, 1);
    scheduleBytes(this.#installation, this.#traffic, name, value, 0);
    this.#unknown.push(name);
    if (this.#unknown.length > 1) return;
    const look = (): void => {
      const isAway = (this.#held.get('registry') ?? 0) > 0;
      const answered = auditor.results.filter(({ requestId }) => this.#unknown.includes(requestId));
      if (isAway && answered.length > 0)
        auditor.violations.push(`${name}: answered though the registry is away`);
      if (isAway) this.#installation.clock.after(UNKNOWN_LOOK_MS, look);
    };
    look();
  }

  /** The version that is live once everything was mended. */
  get version(): number {
    return this.#version;
  }

  #name(prefix: string): string {
    this.#names += 1;
    return `${prefix}-${this.#names}`;
  }

  /** What begins once and ends with the last that holds it, whoever that is. */
  #hold(what: string, forMs: number, begin: () => void, end: () => void): void {
    const held = this.#held.get(what) ?? 0;
    this.#held.set(what, held + 1);
    if (held === 0) begin();
    this.#installation.clock.after(forMs, () => {
      const left = (this.#held.get(what) ?? 1) - 1;
      this.#held.set(what, left);
      if (left === 0) end();
    });
  }

  #ofHost(prefix: string, then: (host: Host) => void): void {
    const [host] = this.#installation.up(prefix);
    if (host !== undefined) then(host);
  }

  #replaceAfter(prefix: string, forMs: number, end: (host: Host) => void): void {
    this.#ofHost(prefix, (host) => {
      end(host);
      this.#installation.clock.after(forMs, () => this.#start(host.name));
    });
  }

  #stop(host: Host): void {
    const { clock, auditor } = this.#installation;
    const startedMs = clock.monotonicMs();
    void this.#installation.close(host).then(() => {
      const tookMs = clock.monotonicMs() - startedMs;
      if (tookMs > STOPPED_MS) auditor.violations.push(`${host.name} took ${tookMs} ms to stop`);
    });
  }

  #standBy(prefix: TargetName, forMs: number): void {
    const name = this.#name(`${prefix}-standby`);
    const host = this.#start(name);
    this.#installation.clock.after(forMs, () => {
      if (host.state === 'up') this.#stop(host);
    });
  }

  #start(name: string): Host {
    const [kind = '', slot] = name.split('-');
    const installation = this.#installation;
    if (kind === 'extractor') return installation.startExtractor(name);
    if (kind === 'router') return installation.startRouter(name, name === 'router' ? 0 : 1);
    if (kind === 'controller') return installation.startController(name);
    return installation.startWorker(kind, Number(slot), name);
  }

  #topicsOf(topic: RefusingTopic): string[] {
    const { topics } = this.#installation;
    if (topic === 'dispatch') return [...SLOTS.keys()].map((pool) => topics.dispatch(pool));
    if (topic === 'dead-letters') return [topics.ingress(), topics.dispatch('cpu')].map(topics.deadLetter);
    return [topics.fixed(topic)];
  }

  #storeAway(back: 'as it was' | 'older' | 'empty', forMs: number): void {
    const { store } = this.#installation;
    const restore = store.backup();
    this.#hold(
      'store',
      forMs,
      () => store.stop(),
      () => {
        if (back === 'older') restore();
        else if (back === 'empty') store.empty();
        store.start();
      },
    );
  }

  #trouble(
    event: Extract<
      FaultEvent,
      { what: 'off the store' | 'slow deliveries' | 'stored twice' | 'delivered again' }
    >,
  ): void {
    this.#ofHost(event.host, ({ name }) => {
      const trouble = this.#installation.troubleOf(name);
      switch (event.what) {
        case 'off the store':
          this.#hold(
            `store of ${name}`,
            event.forMs,
            () => {
              trouble.isStoreCut = true;
            },
            () => {
              trouble.isStoreCut = false;
            },
          );
          return;
        case 'slow deliveries':
          this.#hold(
            `deliveries of ${name}`,
            event.forMs,
            () => {
              trouble.delayMs = event.delayMs;
            },
            () => {
              trouble.delayMs = 0;
            },
          );
          return;
        case 'stored twice':
          this.#hold(
            `produce of ${name}`,
            event.forMs,
            () => {
              trouble.storedTwiceEvery = event.every;
            },
            () => {
              trouble.storedTwiceEvery = 0;
            },
          );
          return;
        case 'delivered again':
          trouble.deliverAgain += 1;
          return;
        default:
          event satisfies never;
      }
    });
  }

  #slowDevices(pool: string, factor: number, forMs: number): void {
    this.#hold(
      'slow devices',
      forMs,
      () => {
        this.#installation.slowdown = (of) => (of === pool ? factor : 1);
      },
      () => {
        this.#installation.slowdown = () => 1;
      },
    );
  }

  #publish(kind: 'next' | 'again' | 'bad'): void {
    if (kind === 'next') this.#version += 1;
    const { client } = this.#installation;
    const isBad = kind === 'bad';
    const command = makeControlCommand({
      commandId: isBad ? this.#name('bad') : `publish-${this.#version}`,
      scope: 'policy/sim',
      type: 'PUBLISH_POLICY',
      body: isBad ? Buffer.from('kind: RoutingPolicy') : policyText(this.#version),
      actor: 'sim',
    });
    void client.bus.produce({
      topic: client.topics.fixed('control'),
      partition: 0,
      key: null,
      value: client.codecs.for('ControlCommand').encode(command),
    });
  }
}

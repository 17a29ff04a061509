import type { MemoryBroker, MemoryConnection } from '../adapters/memory/bus.ts';
import type { Clock } from '../ports/clock.ts';
import type { MessageBus } from '../ports/message-bus.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { Stage } from '../stages/stage.ts';
import { type Host, HostClock } from './host.ts';
import { type NetworkDelays, networkedBus } from './network.ts';

export interface HostsOptions {
  clock: Clock;
  broker: MemoryBroker;
  telemetry: Telemetry;
  sessionTimeoutMs: number;
  drainTimeoutMs: number;
}

/** What is particular about one host. */
export interface Machine {
  name: string;
  /** How long it had been up before the run began, ms: what its monotonic clock starts with. */
  bootedMs: number;
  delays: NetworkDelays;
}

/** Processes that start, crash and close, each on a host of its own, over one broker. */
export class Hosts {
  readonly all: Host[] = [];
  readonly #options: HostsOptions;
  /** What was begun and has not ended, with the process that it is about. */
  readonly #begun = new Map<Promise<void>, Host>();

  constructor(options: HostsOptions) {
    this.#options = options;
  }

  /** Opens a stage on a fresh host. Where that fails, whoever waits in `allSettled` is told. */
  start<S extends Stage>(
    { name, bootedMs, delays }: Machine,
    open: (on: { clock: Clock; bus: MessageBus }) => Promise<S>,
  ): Host<S> {
    const clock = new HostClock(this.#options.clock, bootedMs);
    const bus = this.connect(name);
    const network = networkedBus(bus, clock, delays);
    const host: Host<S> = { name, clock, bus, network, stage: undefined, state: 'up' };
    this.all.push(host);
    void this.#begin(host, async () => {
      host.stage = await open({ clock, bus: network });
    });
    return host;
  }

  up(prefix = ''): Host[] {
    return this.all.filter(({ name, state }) => state === 'up' && name.startsWith(prefix));
  }

  /** As kill -9, or the plug. */
  crash(host: Host): void {
    host.state = 'crashed';
    host.bus.crash();
    host.clock.die();
  }

  /** As SIGTERM; resolves when the process has ended. */
  close(host: Host): Promise<void> {
    host.state = 'closed';
    return this.#begin(host, async () => {
      await host.stage?.close();
      await host.network.close();
    });
  }

  /** Everything that was started or closed has got there; what a crashed process began never will. */
  async allSettled(settle: <T>(promise: Promise<T>) => Promise<T>): Promise<void> {
    for (;;) {
      const open = [...this.#begun]
        .filter(([, host]) => host.state !== 'crashed')
        .map(([promise]) => promise);
      if (open.length === 0) return;
      await settle(Promise.all(open));
    }
  }

  connect(clientId: string): MemoryConnection {
    const { broker, drainTimeoutMs, sessionTimeoutMs, telemetry } = this.#options;
    return broker.connect({ clientId, drainTimeoutMs, sessionTimeoutMs, telemetry });
  }

  #begin(host: Host, step: () => Promise<void>): Promise<void> {
    const promise = step();
    this.#begun.set(promise, host);
    const forget = (): void => {
      this.#begun.delete(promise);
    };
    promise.then(forget, forget);
    return promise;
  }
}

import type { Cancel, Clock } from '../../ports/clock.ts';
import type { ControlStore } from '../../ports/control-store.ts';
import type { Logger } from '../../ports/telemetry.ts';

export interface PeersOptions {
  store: Pick<ControlStore, 'readReports'>;
  clock: Clock;
  logger: Logger;
  /** Whose pointer the routers follow, such as `policy/feed-router`. */
  scope: string;
  /** The name under which this router reports there. */
  own: string;
  /** Called each time that the store was asked, whatever it said. */
  routersAre(own: string, routers: readonly string[]): void;
}

/** Reports are gone 10 s after their router. */
const ASK_EVERY_MS = 2_000;

/**
 * Which routers there are: those that lately reported what they applied of their policy. While the store is away the last answer stands; before
 * the first, a router takes itself for the only one.
 */
export class Peers {
  readonly #options: PeersOptions;
  #routers: readonly string[] = [];
  #isAsking = false;
  #closed = false;
  #cancel: Cancel | undefined;

  constructor(options: PeersOptions) {
    this.#options = options;
  }

  start(): void {
    this.#cancel = this.#options.clock.every(ASK_EVERY_MS, () => void this.#ask());
  }

  close(): void {
    this.#closed = true;
    this.#cancel?.();
  }

  async #ask(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const { store, scope, own, logger, routersAre } = this.#options;
    try {
      this.#routers = [...(await store.readReports(scope)).keys()];
    } catch (error) {
      logger.debug({ scope, error: String(error) }, 'the control store did not say which routers there are');
    } finally {
      this.#isAsking = false;
    }
    if (!this.#closed) routersAre(own, this.#routers);
  }
}

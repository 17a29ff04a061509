import type { CompiledPolicy } from '../../core/policy/compile.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlStore, PolicyPointer } from '../../ports/control-store.ts';
import type { RandomStream } from '../../ports/random.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { ActivePolicy } from './active-policy.ts';

export interface PolicySourceOptions {
  store: ControlStore;
  clock: Clock;
  random: RandomStream;
  telemetry: Telemetry;
  /** Whose pointer is followed, such as `policy/feed-router`. */
  scope: string;
  /** Name under which this router reports what it applied or refused. */
  member: string;
  digest(bytes: Uint8Array): string;
  compile(bytes: Uint8Array): CompiledPolicy;
  apply(policy: ActivePolicy): void;
}

const POLL_MS = 1_000;
const REPORT_TTL_MS = 10_000;

/**
 * Follows the policy pointer. A hint is a hint: the pointer is also read each second, give or take 20 %. Only a higher epoch is
 * applied, and only after the document's digest, its text and its golden tests were checked; a refusal is reported with its reason, and
 * what ran goes on running. A store that is away, empty or older changes nothing.
 */
export class PolicySource {
  readonly #options: PolicySourceOptions;
  #epoch = 0;
  #refusedEpoch = 0;
  #reading: Promise<void> | undefined;
  #again = false;
  #closed = false;
  #unwatch: (() => Promise<void>) | undefined;
  #cancelPoll: (() => void) | undefined;

  constructor(options: PolicySourceOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#schedulePoll();
    await this.#read();
    try {
      this.#unwatch = await this.#options.store.watch(this.#options.scope, () => void this.#read());
    } catch (error) {
      this.#options.telemetry.logger.warn(
        { error: String(error) },
        'hints of the control store are not to be had; polling goes on',
      );
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelPoll?.();
    await this.#unwatch?.();
  }

  #schedulePoll(): void {
    const { clock, random } = this.#options;
    this.#cancelPoll = clock.after(POLL_MS * (0.8 + 0.4 * random.next()), () => {
      void this.#read();
      if (!this.#closed) this.#schedulePoll();
    });
  }

  /** One reading at a time, however many hints come; those that come meanwhile are answered by one more. */
  #read(): Promise<void> {
    if (this.#reading !== undefined) {
      this.#again = true;
      return this.#reading;
    }
    this.#reading = this.#readUntilQuiet();
    return this.#reading;
  }

  async #readUntilQuiet(): Promise<void> {
    do {
      this.#again = false;
      await this.#readOnce();
    } while (this.#again && !this.#closed);
    this.#reading = undefined;
  }

  async #readOnce(): Promise<void> {
    const { store, scope, telemetry } = this.#options;
    try {
      const pointer = await store.readPointer(scope);
      if (pointer === undefined || pointer.epoch <= this.#epoch || this.#closed) return;
      await this.#take(pointer);
    } catch (error) {
      telemetry.logger.debug(
        { scope, error: String(error) },
        'the control store does not answer; the policy in force stays',
      );
    }
  }

  async #take(pointer: PolicyPointer): Promise<void> {
    const { store, scope, member, telemetry } = this.#options;
    const bytes = await store.readDocument(pointer.stable.digest);
    if (this.#closed) return;
    const verdict = this.#verify(pointer, bytes);
    if (verdict.status === 'applied') {
      telemetry.logger.info(
        { scope, epoch: pointer.epoch, version: pointer.stable.version },
        'policy applied',
      );
    } else if (pointer.epoch > this.#refusedEpoch) {
      this.#refusedEpoch = pointer.epoch;
      telemetry.logger.error(
        { scope, epoch: pointer.epoch, reason: verdict.reason },
        'policy refused; the one in force stays',
      );
    }
    await store.report(scope, member, JSON.stringify({ epoch: pointer.epoch, ...verdict }), REPORT_TTL_MS);
  }

  #verify(
    pointer: PolicyPointer,
    bytes: Uint8Array | undefined,
  ): { status: 'applied' } | { status: 'refused'; reason: string } {
    const { digest, compile, apply } = this.#options;
    if (bytes === undefined)
      return { status: 'refused', reason: `the store has no document ${pointer.stable.digest}` };
    if (digest(bytes) !== pointer.stable.digest)
      return { status: 'refused', reason: 'the document does not have the digest that the pointer names' };
    try {
      apply({ ref: pointer.stable, epoch: pointer.epoch, compiled: compile(bytes), source: 'store' });
      this.#epoch = pointer.epoch;
      return { status: 'applied' };
    } catch (error) {
      return { status: 'refused', reason: error instanceof Error ? error.message : String(error) };
    }
  }
}

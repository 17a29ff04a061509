import type { Codecs } from '../contracts/codec.ts';
import { MillraceError } from '../core/errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';

export interface SchemaWaitDeps {
  codecs: Pick<Codecs, 'learn'>;
  clock: Clock;
  telemetry: Telemetry;
}

const LEARN_RETRY_MS = 500;
/** A registry that refuses us needs a person: asking often would only lock the account that asks. */
const REFUSED_RETRY_MS = 30_000;

/**
 * Work that waits until the registry names its writer's schema. A registry that is away, or that refuses us, is never the work's
 * fault: it waits, and with it the commit of its partition, until the registry answers or the work is given up.
 */
export class SchemaWait<T> {
  readonly #stage: string;
  readonly #deps: SchemaWaitDeps;
  readonly #failed: (item: T, error: unknown) => void;
  readonly #waiting = new Set<{ item: T; resume: () => void }>();
  /** Schemas whose look-up failed, and that work waits for. */
  readonly #missed = new Set<number>();

  /** @param failed told of an item whose `resume` threw: nobody else would hear of it */
  constructor(stage: string, deps: SchemaWaitDeps, failed: (item: T, error: unknown) => void) {
    this.#stage = stage;
    this.#deps = deps;
    this.#failed = failed;
  }

  /** Calls `resume` once the registry has answered, unless `item` was given up before. */
  wait(item: T, schemaId: number, resume: () => void): void {
    const entry = { item, resume };
    this.#waiting.add(entry);
    this.#ask(entry, schemaId);
  }

  /** Gives up what `gone` picks, and answers it. */
  abandon(gone: (item: T) => boolean): T[] {
    const abandoned = [...this.#waiting].filter(({ item }) => gone(item));
    for (const entry of abandoned) this.#waiting.delete(entry);
    return abandoned.map(({ item }) => item);
  }

  #ask(entry: { item: T; resume: () => void }, schemaId: number): void {
    this.#deps.codecs.learn(schemaId).then(
      () => {
        this.#missed.delete(schemaId);
        if (this.#waiting.delete(entry)) this.#resume(entry);
      },
      (error: unknown) => {
        this.#warn(schemaId, error);
        this.#deps.clock.after(isFinal(error) ? REFUSED_RETRY_MS : LEARN_RETRY_MS, () => {
          if (this.#waiting.has(entry)) this.#ask(entry, schemaId);
        });
      },
    );
  }

  #resume({ item, resume }: { item: T; resume: () => void }): void {
    try {
      resume();
    } catch (error) {
      this.#failed(item, error);
    }
  }

  /** Once per schema and outage, however much waits for it. */
  #warn(schemaId: number, error: unknown): void {
    if (this.#missed.has(schemaId)) return;
    this.#missed.add(schemaId);
    this.#deps.telemetry.logger.warn(
      { stage: this.#stage, schemaId, error: String(error) },
      'schema look-up failed; records that need it wait, and it is tried again',
    );
  }
}

function isFinal(error: unknown): boolean {
  return error instanceof MillraceError && !error.retryable;
}

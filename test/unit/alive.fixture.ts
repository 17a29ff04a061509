import { collectStartUpGarbage } from '../../src/adapters/system/garbage-collection.ts';

const REGISTERS_MAX = 5;

/** What is watched for whether anything still holds it. */
export class Watched {
  readonly #references: WeakRef<object>[] = [];

  /** Answers what it was given. */
  add<T extends object>(watched: T): T {
    this.#references.push(new WeakRef(watched));
    return watched;
  }

  /** True where a collection of all garbage leaves `count` of them, or a few more that the engine's own registers still hold. */
  async areAlive(count: number): Promise<boolean> {
    // A WeakRef keeps what it was made of or asked for until the turn ends.
    await new Promise((resolve) => setTimeout(resolve, 10));
    collectStartUpGarbage();
    const alive = this.#references.filter((reference) => reference.deref() !== undefined).length;
    return alive >= count && alive <= count + REGISTERS_MAX;
  }
}

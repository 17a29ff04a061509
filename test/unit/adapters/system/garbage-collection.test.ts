import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { collectStartUpGarbage } from '../../../../src/adapters/system/garbage-collection.ts';

describe('the garbage of start-up', () => {
  it('is gone, and no gc function is left for others', async () => {
    let garbage: object | undefined = { bytes: new Array(1_000).fill(0) };
    const left = new WeakRef(garbage);
    garbage = undefined;
    // A WeakRef keeps what it was made of or asked for until the turn ends.
    await pause(1);
    collectStartUpGarbage();
    expect(left.deref()).toBeUndefined();
    expect(Reflect.get(globalThis, 'gc')).toBeUndefined();
  });
});

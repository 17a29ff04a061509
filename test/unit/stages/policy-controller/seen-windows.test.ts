import { describe, expect, it } from 'vitest';
import { SeenWindows } from '../../../../src/stages/policy-controller/seen-windows.ts';

describe('windows that came', () => {
  it('are new once, in whatever order they come, and by source', () => {
    const seen = new SeenWindows();
    expect([3, 1, 2].map((sequence) => seen.isNew('a', sequence))).toEqual([true, true, true]);
    expect([1, 2, 3].map((sequence) => seen.isNew('a', sequence))).toEqual([false, false, false]);
    expect(seen.isNew('b', 1)).toBe(true);
    expect(seen.isNew('toString', 1)).toBe(true);
  });

  it('are remembered for the last 64 of a source', () => {
    const seen = new SeenWindows();
    for (let sequence = 0; sequence < 65; sequence += 1) seen.isNew('a', sequence);
    expect([seen.isNew('a', 1), seen.isNew('a', 0)]).toEqual([false, true]);
  });

  it('are remembered for the 4096 sources that were heard of last', () => {
    const seen = new SeenWindows();
    for (let source = 0; source < 4_096; source += 1) seen.isNew(`w${source}`, 1);
    seen.isNew('w0', 2);
    seen.isNew('another', 1);
    expect([seen.isNew('w0', 1), seen.isNew('w2', 1), seen.isNew('w1', 1)]).toEqual([false, false, true]);
  });
});

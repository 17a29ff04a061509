import { describe, expect, it } from 'vitest';
import { Link } from '../../../../src/adapters/memory/link.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';

describe('Link', () => {
  it('lets calls through in order, at the next turn', async () => {
    const clock = virtualClock();
    const link = new Link(clock, true);
    const seen: string[] = [];
    link.call(() => {
      seen.push('a');
      link.call(() => seen.push('c'));
    });
    link.call(() => seen.push('b'));
    expect(seen).toEqual([]);
    await clock.advanceBy(0);
    expect(seen).toEqual(['a', 'b', 'c']);
  });

  it('keeps what comes after a call that cuts it, in order, and tells for how long it was down', async () => {
    const clock = virtualClock();
    const link = new Link(clock, true);
    const seen: string[] = [];
    link.call(() => {
      seen.push('a');
      link.call(() => seen.push('d'));
    });
    link.call(() => link.cut());
    link.call(() => seen.push('b'));
    link.call(() => seen.push('c'));
    await clock.advanceBy(7);
    expect(seen).toEqual(['a']);
    expect([link.up, link.sinceUpMs()]).toEqual([false, 7]);
    link.mend();
    await clock.advanceBy(0);
    expect(seen).toEqual(['a', 'b', 'c', 'd']);
    expect([link.up, link.sinceUpMs()]).toEqual([true, 0]);
  });

  it('drops everything once it was killed', async () => {
    const clock = virtualClock();
    const link = new Link(clock, false);
    const seen: string[] = [];
    link.call(() => seen.push('a'));
    link.kill();
    link.call(() => seen.push('b'));
    link.mend();
    await clock.advanceBy(0);
    expect(seen).toEqual([]);
    expect(link.killed).toBe(true);
  });

  it('tells its listeners when it is mended, once per time', () => {
    const link = new Link(virtualClock(), false);
    let reconnections = 0;
    link.listeners.add({ reconnected: () => reconnections++ });
    link.mend();
    link.mend();
    expect(reconnections).toBe(1);
  });
});

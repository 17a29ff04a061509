import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Dagor } from '../../../../src/simulation/baselines/dagor.ts';

const LEVELS = { business: 4, user: 8 };

/** A window of requests, all levels alike, then one request of the next window, which moves the level. */
function window(dagor: Dagor, queuedMs: number, startMs: number): number {
  for (let request = 0; request < 320; request += 1) {
    if (dagor.admits((request >> 3) % 4, request % 8, startMs)) dagor.started(queuedMs);
  }
  dagor.admits(0, 0, startMs + 1_000);
  return dagor.level;
}

describe("DAGOR's admission", () => {
  it.each([
    ['falls by 5 % of what was let in, where the mean wait is above 20 ms', 20.1, 29],
    ['stays where all is let in at 20 ms', 20, 31],
  ])('%s', (_, queuedMs, level) => {
    // 32 levels of ten requests each: a twentieth of them are one and a half levels.
    expect(window(new Dagor(LEVELS), queuedMs, 0)).toBe(level);
  });

  it('rises by 1 % of what comes, where the wait is short', () => {
    const dagor = new Dagor(LEVELS);
    window(dagor, 30, 0);
    expect(window(dagor, 5, 1_000)).toBe(30);
  });

  it('moves after 2 000 requests, however soon', () => {
    const dagor = new Dagor(LEVELS);
    for (let request = 0; request < 2_001; request += 1) {
      if (dagor.admits(request % 4, request % 8, 0)) dagor.started(30);
    }
    expect(dagor.level).toBeLessThan(31);
  });

  it('never lets a request in and refuses one of a higher level, within a window', () => {
    const anyRequest = fc.record({ business: fc.nat(3), user: fc.nat(7), queuedMs: fc.nat(60) });
    fc.assert(
      fc.property(fc.array(anyRequest, { minLength: 1, maxLength: 400 }), (requests) => {
        const dagor = new Dagor(LEVELS);
        for (const [index, { business, user, queuedMs }] of requests.entries()) {
          const isIn = dagor.admits(business, user, index * 37);
          expect(isIn).toBe(business * LEVELS.user + user <= dagor.level);
          if (isIn) dagor.started(queuedMs);
        }
      }),
    );
  });
});

import { describe, expect, it } from 'vitest';
import { RouterScore, SCORE_RULES } from '../../../../src/core/routing/router-score.ts';

const half = (): number => 0.5;

/** Router 0 of two, which owns worker 0 (of the fast ones) and worker 2 (of the slow ones). */
function score(rules = SCORE_RULES): RouterScore {
  const speeds = [4, 4, 0.5, 0.5];
  const made = new RouterScore(0, speeds, rules);
  made.membersChanged([true, true, true, true], [0, 1]);
  return made;
}

function send(to: RouterScore, worker: number, predictedMs: number, count: number): void {
  for (let sequence = 0; sequence < count; sequence++) to.dispatched(worker, sequence, predictedMs, 0);
}

describe('RouterScore', () => {
  it("chooses its own fastest worker, and spills to another router's once that is ahead by the penalty", () => {
    const own = score();
    expect(own.choose(8, 0, half)).toBe(0);
    // Services of 2 ms: the other fast worker is 7 ms worse.
    send(own, 0, 8, 3);
    expect(own.choose(8, 0, half)).toBe(0);
    send(own, 0, 8, 1);
    expect(own.choose(8, 0, half)).toBe(1);
  });

  it('weighs wait against speed', () => {
    const own = score({ ...SCORE_RULES, foreignPenaltyServices: 1_000 });
    send(own, 0, 40, 1);
    expect(own.choose(1, 0, half)).toBe(2);
    expect(own.choose(40, 0, half)).toBe(0);
  });

  it('breaks ties at random', () => {
    const alike = new RouterScore(0, [1, 1, 1]);
    let draws = 0;
    const chosen = new Set(Array.from({ length: 50 }, () => alike.choose(1, 0, () => (draws++ * 0.37) % 1)));
    expect(chosen).toEqual(new Set([0, 1, 2]));
  });

  it('deals anew when members change, and chooses nobody where nobody is', () => {
    const own = score();
    own.membersChanged([false, true, true, true], [0, 1]);
    expect(own.choose(8, 0, half)).toBe(1);
    own.membersChanged([false, false, false, true], [0, 1]);
    expect(own.choose(8, 0, half)).toBe(3);
    own.membersChanged([false, false, false, false], [0, 1]);
    expect(own.choose(8, 0, half)).toBeUndefined();
  });

  it('knows nothing any more of a worker that was away', () => {
    const own = score();
    send(own, 0, 8, 50);
    expect(own.choose(8, 0, half)).not.toBe(0);
    own.membersChanged([false, true, true, true], [0, 1]);
    own.membersChanged([true, true, true, true], [0, 1]);
    expect(own.choose(8, 0, half)).toBe(0);
  });

  it('leaves a worker whose snapshot shows a long queue, and one that turned slow', () => {
    const heard = score();
    const snapshot = {
      takenAtMs: 0,
      queuedMs: 400,
      lastSequenceSeen: -1,
      enqueuedMs: 400,
    };
    heard.heard(0, snapshot);
    expect(heard.choose(8, 0, half)).not.toBe(0);
    const slow = score();
    for (let sequence = 0; sequence < 60; sequence++) {
      slow.dispatched(0, sequence, 8, sequence * 100);
      const end = { sequence, sojournMs: 40, busyMs: 40 };
      const idle = {
        takenAtMs: sequence * 100 + 42,
        queuedMs: 0,

        lastSequenceSeen: sequence,
        enqueuedMs: 8 * (sequence + 1),
      };
      slow.acknowledged(0, end, idle, sequence * 100 + 44);
    }
    expect(slow.choose(8, 10_000, half)).not.toBe(0);
  });

  it('refuses a worker that it was not made for', () => {
    expect(() =>
      score().heard(4, { takenAtMs: 0, queuedMs: 0, lastSequenceSeen: -1, enqueuedMs: 0 }),
    ).toThrow('worker 4: there are those from 0 to 3');
  });
});

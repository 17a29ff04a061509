import { describe, expect, it } from 'vitest';
import { OverloadQueue } from '../../../../src/core/overload/overload-queue.ts';
import { OverloadRules } from '../../../../src/core/overload/overload-rules.ts';
import type { PricedWork } from '../../../../src/core/overload/priced-work.ts';
import { work } from './work.fixture.ts';

interface Named extends PricedWork {
  name: string;
}

function named(name: string, deadlineMs: number, value = 8): Named {
  return { ...work({ deadlineMs, base: { costMs: 6, value } }), name };
}

function calm(): OverloadQueue<Named> {
  return new OverloadQueue(new OverloadRules({ order: 'strict', slaMs: 100, expectedThroughput: 1 }, 0));
}

function drain(queue: OverloadQueue<Named>, nowMs: number) {
  const ran: string[] = [];
  const dropped: [string, string][] = [];
  for (;;) {
    const started = queue.next(nowMs, ({ name }, reason) => dropped.push([name, reason]));
    if (started === undefined) return { ran, dropped };
    ran.push(started.work.name);
  }
}

describe('the queue of an overloaded pool', () => {
  it('runs the earliest deadline first in calm times, ties in order of arrival', () => {
    const queue = calm();
    for (const each of [named('c', 90), named('a', 50), named('d', 90), named('b', 60)]) queue.push(each, 0);
    expect(drain(queue, 0).ran).toEqual(['a', 'b', 'c', 'd']);
  });

  it('gives back what cannot end in time, and says why', () => {
    const queue = calm();
    for (const each of [named('gone', 10), named('tight', 15.9), named('fits', 16)]) queue.push(each, 0);
    expect(drain(queue, 10)).toEqual({
      ran: ['fits'],
      dropped: [
        ['gone', 'expired'],
        ['tight', 'cannot finish'],
      ],
    });
  });

  it('in an overload runs what the cut pays for by deadline, and then the rest by density', () => {
    const queue = calm();
    const lasting = 1e9;
    queue.push(named('let in before it', 2_100, 6.8), 0);
    for (let nowMs = 10; nowMs <= 2_000; nowMs += 10) {
      queue.push(named('load', lasting, 12), nowMs);
      queue.push(named('load', lasting, 4), nowMs);
      queue.complete(10, 10);
      queue.tick(nowMs);
    }
    expect(queue.report(2_000).isOverloaded).toBe(true);
    for (const each of [
      named('dense, late', 2_500, 12),
      named('thin', 2_300, 7),
      named('thinner', 2_200, 6.5),
      named('dense, soon', 2_400, 12),
    ])
      queue.push(each, 2_000);
    const { ran } = drain(queue, 2_000);
    const order = ran.filter((name) => name !== 'load');
    expect(order).toEqual(['dense, soon', 'dense, late', 'thin', 'let in before it', 'thinner']);
    expect(queue.length).toBe(0);
  });

  it('does not take servers that have nothing to do for slow ones', () => {
    const queue = calm();
    for (let nowMs = 10; nowMs <= 10_000; nowMs += 10) queue.tick(nowMs);
    expect(queue.report(10_000).throughput).toBe(1);
  });

  it('finds the servers slow where work waits and little is completed', () => {
    const queue = calm();
    for (let nowMs = 10; nowMs <= 10_000; nowMs += 10) {
      queue.push(named('load', 1e9), nowMs);
      queue.complete(5, 10);
      queue.tick(nowMs);
    }
    expect(queue.report(10_000).throughput).toBeCloseTo(0.5, 1);
  });

  it('still serves at full rate where no request was given a value', () => {
    const queue = calm();
    let ran = 0;
    for (let nowMs = 10; nowMs <= 5_000; nowMs += 10) {
      for (let each = 0; each < 4; each += 1) queue.push(named('no value', nowMs + 100, 0), nowMs);
      const started = queue.next(nowMs, () => {});
      if (started !== undefined) ran += 1;
      queue.complete(10, 10);
      queue.tick(nowMs);
    }
    expect(ran).toBe(500);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createTopicDelay } from '../../../../src/core/latency/topic-delay.ts';

const HOUR_MS = 3_600_000;

interface Start {
  topic: string;
  partition: number;
  timestampMs: number;
}

/** Records of each partition in the order of their offsets, as long as the test names no other. */
function start() {
  const delay = createTopicDelay();
  const next = new Map<string, number>();
  const nextOffset = (topic: string, partition: number): number => {
    const offset = next.get(`${topic}/${partition}`) ?? 0;
    next.set(`${topic}/${partition}`, offset + 1);
    return offset;
  };
  return {
    starts: (oldest: Start, newestAppendMs: number, nowMs: number): void =>
      delay.starts({ ...oldest, offset: 0 }, newestAppendMs, nowMs),
    inTopicMs(
      topic: string,
      partition: number,
      timestampMs: number,
      nowMs: number,
      offset = nextOffset(topic, partition),
    ): number {
      return delay.inTopicMs({ topic, partition, offset, timestampMs }, nowMs);
    },
  };
}

describe('time in the topic', () => {
  it.each([
    ['equal clocks', 0],
    ['a local clock an hour ahead', HOUR_MS],
    ['a local clock an hour behind', -HOUR_MS],
  ])('with %s a record that came at once is charged nothing, one that waited its wait', (_name, skewMs) => {
    const delay = start();
    expect(delay.inTopicMs('t', 0, 1_000, 1_002 + skewMs)).toBe(0);
    expect(delay.inTopicMs('t', 0, 2_000, 2_052 + skewMs)).toBeCloseTo(50, 0);
    expect(delay.inTopicMs('t', 0, 3_000, 3_002 + skewMs)).toBeCloseTo(0, 0);
  });

  it('a broker clock that jumps back an hour charges nobody an hour', () => {
    const delay = start();
    delay.inTopicMs('t', 0, HOUR_MS, 0);
    expect(delay.inTopicMs('t', 0, 10, 10)).toBe(0);
    expect(delay.inTopicMs('t', 0, 20, 45)).toBeCloseTo(25, 0);
  });

  it.each([
    ['longer than the pauses between records', -HOUR_MS, 0],
    ['longer than the pauses by little', -215, 0],
    ['shorter than the pauses', -100, 4],
    ['shorter than the pauses, the larger half of a second', -150, 4],
  ])('a jump back of the broker’s clock that is %s charges at most a few records', (_name, byMs, charged) => {
    const delay = start();
    const everyMs = 200;
    const charges: number[] = [];
    for (let n = 0; n < 100; n += 1) {
      const jitterMs = (n * 7) % 5;
      const appendMs = n * everyMs + (n < 20 ? 0 : byMs);
      charges.push(delay.inTopicMs('t', 0, appendMs, n * everyMs + 3 + jitterMs));
    }
    const isHarm = (ms: number): boolean => ms > 20;
    expect(charges.filter(isHarm).length).toBeLessThanOrEqual(charged);
    // And waits are charged as before.
    expect(delay.inTopicMs('t', 0, 100 * everyMs + byMs, 100 * everyMs + 93)).toBeGreaterThan(80);
  });

  it('a backlog that is read in heaps is charged for as long as it lasts', () => {
    const delay = start();
    delay.inTopicMs('t', 0, 0, 0);
    // Each 50 ms a heap of five is read; all of them have waited half a second.
    for (let heap = 1; heap < 200; heap += 1) {
      for (let n = 0; n < 5; n += 1) {
        const appendMs = heap * 50 + n * 10;
        expect(delay.inTopicMs('t', 0, appendMs, heap * 50 + 540)).toBeGreaterThan(490);
      }
    }
  });

  it('lone records that waited differently long are charged each its wait', () => {
    const delay = start();
    delay.inTopicMs('t', 0, 0, 0);
    for (let n = 1; n < 100; n += 1) {
      const waitMs = n % 2 === 0 ? 40 : 90;
      expect(delay.inTopicMs('t', 0, n * 100, n * 100 + waitMs)).toBeCloseTo(waitMs, -1);
    }
  });

  it('a broker clock that jumps ahead an hour charges nobody, and goes on charging waits after it', () => {
    const delay = start();
    delay.inTopicMs('t', 0, 0, 0);
    expect(delay.inTopicMs('t', 0, HOUR_MS, 10)).toBe(0);
    expect(delay.inTopicMs('t', 0, HOUR_MS + 10, 50)).toBeCloseTo(30, 0);
  });

  it('a backlog of minutes is charged in full', () => {
    const delay = start();
    delay.inTopicMs('t', 0, 0, 5);
    expect(delay.inTopicMs('t', 0, 1_000, 121_005)).toBeGreaterThan(119_900);
  });

  it.each([
    ['equal clocks', 0],
    ['a local clock an hour ahead', HOUR_MS],
  ])(
    'a backlog that was there at the start is charged against its newest record, with %s',
    (_name, skewMs) => {
      const delay = start();
      const nowMs = 6_000 + skewMs;
      delay.starts({ topic: 't', partition: 0, timestampMs: 0 }, 5_900, nowMs);
      const charged = [0, 3_000, 5_900].map((appendMs) => delay.inTopicMs('t', 0, appendMs, nowMs));
      expect(charged.map(Math.round)).toEqual([5_900, 2_900, 0]);
    },
  );

  it('the start of a partition that is known, or over which the clock went back, changes nothing', () => {
    const delay = start();
    delay.inTopicMs('t', 0, 1_000, 1_000);
    delay.starts({ topic: 't', partition: 0, timestampMs: 1_000 }, 2_000, 3_000);
    expect(delay.inTopicMs('t', 0, 2_000, 3_000)).toBeCloseTo(1_000, 0);
    delay.starts({ topic: 't', partition: 1, timestampMs: HOUR_MS }, 10, 20);
    expect(delay.inTopicMs('t', 1, HOUR_MS, 20)).toBe(0);
    expect(delay.inTopicMs('t', 1, 10, 20)).toBe(0);
  });

  it('records that are delivered again after a pause are charged the pause, and so is what comes after them', () => {
    const delay = start();
    for (const appendMs of [1_000, 4_000, 5_000]) delay.inTopicMs('t', 0, appendMs, appendMs + 1_000);
    // 10 s without broker or session; the last two were not committed and come again.
    expect(delay.inTopicMs('t', 0, 4_000, 16_000, 1)).toBeGreaterThan(10_900);
    expect(delay.inTopicMs('t', 0, 5_000, 16_000, 2)).toBeGreaterThan(9_900);
    expect(delay.inTopicMs('t', 0, 6_000, 16_000)).toBeGreaterThan(8_900);
    expect(delay.inTopicMs('t', 0, 15_990, 16_990)).toBeLessThan(10);
  });

  it('records that are delivered again one by one are no jump of a clock', () => {
    const delay = start();
    for (let n = 0; n < 20; n += 1) delay.inTopicMs('t', 0, n * 100, n * 100 + 5);
    for (let n = 0; n < 20; n += 1)
      expect(delay.inTopicMs('t', 0, n * 100, 20_000 + n * 100, n)).toBeGreaterThan(19_900);
  });

  it('a topic that was made anew starts at old offsets: its records are not those of the old one', () => {
    const delay = start();
    for (let n = 0; n < 20; n += 1) delay.inTopicMs('t', 0, n * 100, n * 100 + 5);
    expect(delay.inTopicMs('t', 0, HOUR_MS, HOUR_MS + 5, 0)).toBeLessThan(1);
    expect(delay.inTopicMs('t', 0, 1_000, HOUR_MS + 10, 1)).toBe(0);
  });

  it('partitions are measured apart', () => {
    const delay = start();
    delay.inTopicMs('t', 0, 0, 0);
    expect(delay.inTopicMs('t', 1, 0, 500)).toBe(0);
    expect(delay.inTopicMs('u', 0, 0, 500)).toBe(0);
  });

  it('is never negative, and never more than the wait when clocks are steady', () => {
    const waits = fc.array(
      fc.tuple(fc.double({ min: 0, max: 50, noNaN: true }), fc.double({ min: 0, max: 500, noNaN: true })),
      { minLength: 1, maxLength: 100 },
    );
    fc.assert(
      fc.property(waits, fc.integer({ min: -HOUR_MS, max: HOUR_MS }), (steps, skewMs) => {
        const delay = start();
        let appendMs = 0;
        for (const [gapMs, waitMs] of steps) {
          appendMs += gapMs;
          const chargedMs = delay.inTopicMs('t', 0, appendMs, appendMs + waitMs + skewMs);
          expect(chargedMs).toBeGreaterThanOrEqual(0);
          expect(chargedMs).toBeLessThanOrEqual(waitMs + 1e-6);
        }
      }),
    );
  });
});

import { describe, expect, it } from 'vitest';
import type { FaultEvent, FaultSchedule } from './fault-schedule.ts';
import { commandOf, runSchedule, scheduleOf } from './run-schedule.ts';
import { type Judge, shrink } from './shrink.ts';

const SEEDS = 200;

describe('whatever a random schedule of faults does', () => {
  it('every request ends once, no commit goes past unfinished work, epochs rise and routers converge', async () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const schedule = scheduleOf(seed);
      const { violations } = await runSchedule(schedule);
      expect(violations, commandOf(schedule)).toEqual([]);
    }
  });

  it('stores the same bytes when it is run again, also from its text', async () => {
    for (const seed of [3, 4, 5]) {
      const schedule = scheduleOf(seed);
      const copy = JSON.parse(JSON.stringify(schedule)) as FaultSchedule;
      const digests: string[] = [];
      for (const each of [schedule, copy]) {
        const { installation } = await runSchedule(each);
        digests.push(`${installation.auditor.digest()} ${installation.clock.monotonicMs()}`);
      }
      expect(digests[1]).toBe(digests[0]);
    }
  });
});

describe('a schedule that fails', () => {
  const crash: FaultEvent = { atMs: 50, what: 'crash', host: 'router', forMs: 100 };
  const away: FaultEvent = { atMs: 70, what: 'broker away', forMs: 300 };
  const others = scheduleOf(11).events.filter(({ what }) => what !== 'crash' && what !== 'broker away');
  const schedule: FaultSchedule = {
    ...scheduleOf(11),
    events: [...others, crash, ...others, away, ...others],
  };

  it.each<{
    fails: string;
    judge: (of: FaultSchedule) => boolean;
    left: readonly FaultEvent[];
    requests: number;
  }>([
    { fails: 'always', judge: () => true, left: [], requests: 1 },
    { fails: 'by one event', judge: (of) => of.events.includes(crash), left: [crash], requests: 1 },
    {
      fails: 'by two events together, with five requests',
      judge: ({ events, requests }) => events.includes(crash) && events.includes(away) && requests >= 5,
      left: [crash, away],
      requests: 5,
    },
  ])('$fails: is cut to that', async ({ judge, left, requests }) => {
    const asked: Judge = async (of) => (judge(of) ? { violations: ['wrong'] } : undefined);
    const { schedule: small } = await shrink(schedule, asked);
    expect(small.events).toEqual(left);
    expect(small.requests).toBe(requests);
    expect(small.seed).toBe(schedule.seed);
  });
});

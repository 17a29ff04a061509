import { describe, expect, it, vi } from 'vitest';
import { JobEndings } from '../../src/stages/accelerator-worker/job-endings.ts';
import type { FaultEvent, FaultSchedule } from './fault-schedule.ts';
import { commandOf, runSchedule, scheduleOf } from './run-schedule.ts';
import { failureOf, type Judge, shrink } from './shrink.ts';

const SEEDS = 200;

const isPoison = ({ what }: FaultEvent): boolean => what === 'poison';

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

  it('of a planted bug, poison that has no end in a worker, is cut to the poison, and fails again from its text', async () => {
    const endings = vi.spyOn(JobEndings.prototype, 'deadLetter').mockImplementation(() => undefined);
    try {
      const seeds = Array.from({ length: 100 }, (_, n) => scheduleOf(n + 1));
      const failing = seeds.find(({ events }) => events.length > 3 && events.some(isPoison));
      if (failing === undefined) throw new Error('none of these schedules has poison');
      const { schedule: small, runs } = await shrink(failing, failureOf);
      expect(small.events.map(({ what }) => what)).toEqual(['poison']);
      expect(small.requests).toBe(1);
      expect(runs).toBeLessThan(60);
      const again = JSON.parse(JSON.stringify(small)) as FaultSchedule;
      expect(await failureOf(again)).toBeDefined();
      endings.mockRestore();
      expect(await failureOf(again)).toBeUndefined();
    } finally {
      endings.mockRestore();
    }
  });
});

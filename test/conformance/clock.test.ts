import { systemClock } from '../../src/adapters/system/clock.ts';
import { virtualClock } from '../../src/simulation/virtual-clock.ts';
import { clockConformance } from './clock.suite.ts';

clockConformance('system', () => ({
  clock: systemClock(),
  until: async (condition) => {
    const deadlineMs = Date.now() + 20_000;
    while (!condition()) {
      if (Date.now() > deadlineMs) throw new Error('in 20 seconds, the condition did not hold');
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  },
}));

clockConformance('virtual', () => {
  const clock = virtualClock();
  return {
    clock,
    until: async (condition) => {
      if (!(await clock.runUntil(condition, 60_000)))
        throw new Error('in a virtual minute, the condition did not hold');
    },
  };
});

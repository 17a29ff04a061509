import { expect, it } from 'vitest';
import { LiveWorkers } from '../../../../src/stages/policy-controller/live-workers.ts';

it('workers are live for three seconds after they were heard of, unless they say good-bye', () => {
  const workers = new LiveWorkers<string>();
  workers.heard('a', 'first', 0);
  workers.heard('a', 'second', 1_000);
  workers.heard('b', 'b', 2_000);
  workers.heard('c', 'c', 2_000);
  workers.gone('c');
  expect([workers.live(4_000), workers.live(4_001), workers.live(5_001)]).toEqual([
    ['second', 'b'],
    ['b'],
    [],
  ]);
});

it('silent ones are forgotten also where nobody asks who is live', () => {
  const workers = new LiveWorkers<string>();
  for (let second = 0; second < 1_000; second += 1) workers.heard(`worker-${second}`, '', second * 1_000);
  expect(workers.size).toBeLessThan(10);
});

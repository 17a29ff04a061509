import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KnownWorkers } from '../../../../src/core/routing/known-workers.ts';
import type { WorkerStatus } from '../../../../src/core/routing/slot.ts';
import type { WorkerBacklog } from '../../../../src/core/routing/worker-backlog.ts';
import { workerStatus } from './routing.fixture.ts';

const STALE_MS = 1_000;

/** What one router knows of these workers. */
function knowing(
  own: string,
  routers: readonly string[],
  statuses: readonly Partial<WorkerStatus>[],
): { known: KnownWorkers; owned: () => string[]; backlogs: Map<string, WorkerBacklog> } {
  const known = new KnownWorkers(STALE_MS);
  known.routersAre(own, routers, 0);
  const backlogs = new Map<string, WorkerBacklog>();
  for (const fields of statuses) {
    const status = workerStatus(fields);
    const backlog = known.heard(status, 0);
    if (backlog !== undefined) backlogs.set(status.worker, backlog);
  }
  const owned = (): string[] =>
    [...backlogs].flatMap(([name, { isOwned }]) => (isOwned ? [name] : [])).sort();
  return { known, owned, backlogs };
}

const names = (prefix: string, most: number) =>
  fc.uniqueArray(fc.nat(99), { minLength: 1, maxLength: most }).map((all) => all.map((n) => `${prefix}${n}`));

describe('workers', () => {
  it('have one owner each, in whatever order routers hear of each other and of them', () => {
    const speeds = fc.array(fc.constantFrom(1, 2, 4), { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(
        names('router-', 5),
        names('worker-', 8),
        speeds,
        fc.infiniteStream(fc.nat()),
        (routers, workers, speed, order) => {
          const statuses = workers.map((worker, n) => ({ worker, speed: speed[n] ?? 1 }));
          const shuffled = <T>(all: readonly T[]): T[] =>
            all
              .map((each) => ({ each, at: order.next().value }))
              .sort((a, b) => a.at - b.at)
              .map(({ each }) => each);
          const all = routers.flatMap((own) => knowing(own, shuffled(routers), shuffled(statuses)).owned());
          expect(all.sort()).toEqual(workers.toSorted());
        },
      ),
    );
  });

  it('are all those of a router that is alone', () => {
    expect(knowing('a', [], [{ worker: 'x' }, { worker: 'y' }]).owned()).toEqual(['x', 'y']);
  });

  it('are dealt by class: a router has its part of each', () => {
    const statuses = ['cpu', 'gpu'].flatMap((accelerator) =>
      ['1', '2', '3'].map((n) => ({ accelerator, pool: accelerator, worker: `${accelerator}-${n}` })),
    );
    expect(knowing('a', ['b'], statuses).owned()).toEqual(['cpu-1', 'cpu-3', 'gpu-1', 'gpu-3']);
    expect(knowing('b', ['a'], statuses).owned()).toEqual(['cpu-2', 'gpu-2']);
  });

  it('are dealt alike by routers that heard speeds a little apart', () => {
    const heard = (drift: number) =>
      ['x', 'y', 'z'].map((worker, n) => ({ worker, speed: 1 + drift * (n - 1) }));
    expect(
      [...knowing('a', ['b'], heard(0.05)).owned(), ...knowing('b', ['a'], heard(-0.05)).owned()].sort(),
    ).toEqual(['x', 'y', 'z']);
  });

  it('are dealt anew when a router comes, and when a worker leaves or falls silent', () => {
    const { known, owned } = knowing('b', [], [{ worker: 'x' }, { worker: 'y' }, { worker: 'z' }]);
    known.routersAre('b', ['a', 'b'], 10);
    expect(owned()).toEqual(['y']);
    known.remove('x', 20);
    expect(owned()).toContain('z');
    known.heard(workerStatus({ worker: 'z', sequence: 2 }), STALE_MS + 1);
    known.routersAre('b', ['a', 'b'], STALE_MS + 1);
    expect(owned()).not.toContain('z');
  });
});

describe('a heartbeat', () => {
  it('tells of the queue and the speed, where none of the own dispatches can be in it', () => {
    const { known, backlogs } = knowing('a', [], [{ worker: 'x', queuedPredictedMs: 10 }]);
    const backlog = backlogs.get('x');
    expect(backlog?.waitMs(0)).toBe(10);
    known.heard(workerStatus({ worker: 'x', sequence: 2, queuedPredictedMs: 60, speed: 2 }), 5);
    expect(backlog?.waitMs(5)).toBe(30);
    backlog?.dispatched(1, 10, 5);
    known.heard(workerStatus({ worker: 'x', sequence: 3, queuedPredictedMs: 500, speed: 2 }), 5);
    expect(backlog?.waitMs(5)).toBe(35);
  });

  it('that comes after a later one of the same life says nothing', () => {
    const { known } = knowing('a', [], [{ worker: 'x', sequence: 7 }]);
    expect(known.heard(workerStatus({ worker: 'x', sequence: 7 }), 1)).toBeUndefined();
    expect(known.heard(workerStatus({ worker: 'x', sequence: 1, incarnation: 'i2' }), 1)).toBeDefined();
  });
});

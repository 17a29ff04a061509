import { expect, it } from 'vitest';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import { MillraceError } from '../../../../src/core/errors.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';
import { Peers } from '../../../../src/stages/request-router/peers.ts';

it('are the routers that reported of late; while the store is away, those of its last answer', async () => {
  const clock = virtualClock();
  let reports: string[] | undefined = ['a', 'b'];
  let until: Promise<void> | undefined;
  const told: string[][] = [];
  const peers = new Peers({
    store: {
      async readReports(scope) {
        await until;
        if (reports === undefined) throw new MillraceError('STORE_UNAVAILABLE', 'away');
        return new Map(reports.map((name) => [name, scope]));
      },
    },
    clock,
    logger: silentTelemetry().logger,
    scope: 'policy/p',
    own: 'a',
    routersAre: (own, routers) => told.push([own, ...routers]),
  });
  peers.start();
  await clock.advanceBy(2_000);
  reports = undefined;
  await clock.advanceBy(2_000);
  reports = ['a'];
  await clock.advanceBy(2_000);
  expect(told).toEqual([
    ['a', 'a', 'b'],
    ['a', 'a', 'b'],
    ['a', 'a'],
  ]);
  await clock.advanceBy(1_999);
  const away = Promise.withResolvers<void>();
  until = away.promise;
  await clock.advanceBy(1);
  peers.close();
  away.resolve();
  await clock.advanceBy(10_000);
  expect(told).toHaveLength(3);
});

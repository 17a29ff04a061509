import { describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import type { RouterWindow } from '../../../../src/contracts/records.ts';
import { MillraceError } from '../../../../src/core/errors.ts';
import type { OutboundRecord } from '../../../../src/ports/message-bus.ts';
import { RouterWindows } from '../../../../src/stages/request-router/router-windows.ts';
import type { StageDeps } from '../../../../src/stages/stage.ts';
import { codecs, topics } from '../records.fixture.ts';
import { canary, policy, startRouter, status } from './router.fixture.ts';

/** A router whose windows go to a broker that stores them when the test lets it. */
function start() {
  const world = startRouter({ config: { creditsMax: 1_000 } });
  const sent: RouterWindow[] = [];
  const held: (() => void)[] = [];
  const broker = { isHolding: false };
  const codec = codecs.for('RouterWindow');
  const isTooLarge = { next: false };
  const encode = (window: RouterWindow): Buffer => {
    if (!isTooLarge.next) return codec.encode(window);
    isTooLarge.next = false;
    throw new MillraceError('TOO_LARGE', 'RouterWindow is too large');
  };
  const bus = {
    produce: async ({ value }: OutboundRecord): Promise<void> => {
      const decoded = codecs.for('RouterWindow').decode(value);
      if (decoded.status !== 'ok') throw new Error('no window');
      sent.push(decoded.value);
      if (broker.isHolding) await new Promise<void>((resolve) => held.push(resolve));
    },
  };
  const deps = {
    bus,
    codecs: { for: () => ({ headers: codec.headers, encode }) },
    topics,
    clock: world.clock,
    telemetry: silentTelemetry(),
  } as unknown as StageDeps;
  const windows = new RouterWindows('router#1', deps, world.router);
  world.router.onStatus(status({ batchRequests: 1_000 }));
  const second = async (): Promise<void> => {
    await world.clock.advanceBy(1_000);
    world.router.onStatus(status({ batchRequests: 1_000, sequence: world.clock.monotonicMs() }));
  };
  return { ...world, windows, sent, held, broker, isTooLarge, second };
}

describe('a window of a router', () => {
  it('says what was done in it, by whom, and in which time', async () => {
    const { router, route, windows, sent, second } = start();
    router.setPolicy(policy(undefined, 3), canary({ mode: 'shadow' }));
    sent.length = 0;
    route();
    route();
    await second();
    windows.tick();
    expect(sent).toMatchObject([
      {
        router: 'router#1',
        windowMs: 1_000,
        policyDigest: 'sha256:3',
        policyEpoch: 3,
        candidateDigest: 'sha256:2',
        exposure: { STABLE: 2 },
        leaves: { rest: 2 },
        pools: { cpu: 2 },
        arms: [{ arm: 'STABLE', analysed: true, requests: 2 }],
        shadow: [{ leaf: 'rest', requests: 2, changed: 2 }],
        shadowLeaves: { all: 2 },
      },
    ]);
  });

  it('ends with a swap: none is of two policies', async () => {
    const { clock, router, route, windows, sent, second } = start();
    route();
    await clock.advanceBy(300);
    router.setPolicy(policy(undefined, 2), canary());
    route({ bucketKey: '' });
    await second();
    windows.tick();
    await clock.advanceBy(0);
    expect(
      sent.map(({ sequence, policyEpoch, windowMs, exposure, candidateDigest }) => [
        sequence,
        policyEpoch,
        windowMs,
        exposure,
        candidateDigest,
      ]),
    ).toEqual([
      [1, 1, 300, { STABLE: 1 }, null],
      [2, 2, 1_000, { STABLE: 1 }, 'sha256:2'],
    ]);
  });

  it('stays open while the one before is not stored yet, and loses nothing', async () => {
    const { clock, route, windows, sent, held, broker, second } = start();
    broker.isHolding = true;
    windows.tick();
    for (let n = 0; n < 5; n += 1) {
      route();
      await second();
      windows.tick();
    }
    expect(sent).toHaveLength(1);
    broker.isHolding = false;
    for (const store of held) store();
    await clock.advanceBy(0);
    windows.tick();
    expect(sent.map(({ exposure, windowMs }) => [exposure, windowMs])).toEqual([
      [{}, 0],
      [{ STABLE: 5 }, 5_000],
    ]);
  });

  it('is left out where it is too large, and the next ones come', async () => {
    const { clock, router, route, windows, sent, isTooLarge } = start();
    isTooLarge.next = true;
    route();
    router.setPolicy(policy(undefined, 2));
    await clock.advanceBy(0);
    expect(sent).toEqual([]);
    windows.tick();
    expect(sent).toMatchObject([{ sequence: 2, policyEpoch: 2 }]);
  });

  it.each([
    ['waits its turn, and loses nothing', 28, 28],
    ['is left out where too many wait, and is never counted for the next policy', 200, 65],
  ])('of each of many swaps %s', async (_what, swaps, stored) => {
    const { clock, router, route, windows, sent, held, broker } = start();
    broker.isHolding = true;
    for (let epoch = 2; epoch < 2 + swaps; epoch += 1) {
      route();
      router.setPolicy(policy(undefined, epoch));
    }
    expect(sent).toHaveLength(1);
    broker.isHolding = false;
    for (const store of held) store();
    await clock.advanceBy(0);
    expect(sent.map(({ sequence, exposure }) => [sequence, exposure['STABLE']])).toEqual(
      Array.from({ length: stored }, (_, index) => [index + 1, 1]),
    );
    expect(sent.every(({ sequence, policyEpoch }) => sequence === policyEpoch)).toBe(true);
    windows.tick();
    await clock.advanceBy(0);
    expect(sent.at(-1)).toMatchObject({ sequence: swaps + 1, policyEpoch: swaps + 1, exposure: {} });
  });
});

import { describe, expect, it } from 'vitest';
import { makeScoreRequest, type ScoreRequest } from '../../../src/contracts/records.ts';
import { virtualClock } from '../../../src/simulation/virtual-clock.ts';
import type { Arrival } from '../../../src/traffic/arrivals.ts';
import { type DriveOptions, drive } from '../../../src/traffic/drive.ts';

function* every(afterMs: number, count = Number.POSITIVE_INFINITY): Generator<Arrival> {
  for (let n = 0; n < count; n += 1) yield { afterMs, shape: { candidates: 1, historyRows: 0 } };
}

function start(options: Partial<DriveOptions> = {}) {
  const clock = virtualClock();
  const sent: [id: string, atMs: number][] = [];
  const driving = drive({
    arrivals: every(10),
    maker: {
      make: (requestId): ScoreRequest =>
        makeScoreRequest({ requestId, model: 'ranker', baselineCandidates: 1 }),
    },
    clock,
    idPrefix: 'x-',
    send: async ({ requestId }) => {
      sent.push([requestId, clock.monotonicMs()]);
    },
    requestsMax: Number.POSITIVE_INFINITY,
    durationMs: Number.POSITIVE_INFINITY,
    ...options,
  });
  return { clock, sent, driving };
}

describe('an open loop', () => {
  it('sends each request at its time, with ids of its own', async () => {
    const { clock, sent, driving } = start({ requestsMax: 3 });
    await clock.advanceBy(100);
    expect(await driving).toEqual({ sent: 3, refused: 0, behindMsMax: 0 });
    expect(sent).toEqual([
      ['x-0', 10],
      ['x-1', 20],
      ['x-2', 30],
    ]);
  });

  it('waits for no answer before it sends the next', async () => {
    const answers: (() => void)[] = [];
    const { clock, driving } = start({
      requestsMax: 50,
      send: () => new Promise((resolve) => answers.push(resolve)),
    });
    await clock.advanceBy(1_000);
    expect(answers).toHaveLength(50);
    for (const answer of answers) answer();
    expect(await driving).toMatchObject({ sent: 50 });
  });

  it('ends with the arrivals', async () => {
    const { clock, driving } = start({ arrivals: every(10, 4) });
    await clock.advanceBy(1_000);
    expect(await driving).toMatchObject({ sent: 4 });
  });

  it('ends when its time is over, and not before', async () => {
    const { clock, sent, driving } = start({ durationMs: 35 });
    let endedMs = -1;
    driving.then(() => {
      endedMs = clock.monotonicMs();
    });
    await clock.advanceBy(1_000);
    expect([sent.length, endedMs]).toEqual([3, 35]);
  });

  it('ends at once when aborted, also in a pause', async () => {
    const stop = new AbortController();
    const { clock, sent, driving } = start({ arrivals: every(1_000), signal: stop.signal });
    await clock.advanceBy(1_500);
    stop.abort();
    expect(await driving).toMatchObject({ sent: 1 });
    expect([sent.length, clock.pending]).toEqual([1, 0]);
  });

  it('sends nothing where it was aborted before', async () => {
    const stop = new AbortController();
    stop.abort();
    expect(await start({ signal: stop.signal }).driving).toMatchObject({ sent: 0 });
  });

  it('waits no longer than a moment for what is under way when it is aborted, on a bus that does not answer', async () => {
    const stop = new AbortController();
    const { clock, driving } = start({
      requestsMax: 2,
      signal: stop.signal,
      send: () => new Promise(() => undefined),
    });
    await clock.advanceBy(5_000);
    stop.abort();
    await clock.advanceBy(300);
    expect(await driving).toMatchObject({ sent: 2 });
    expect(clock.pending).toBe(0);
  });

  it('counts what the bus refused, and goes on', async () => {
    const { clock, driving } = start({
      requestsMax: 4,
      send: async ({ requestId }) => {
        if (requestId === 'x-1') throw new Error('refused');
      },
    });
    await clock.advanceBy(1_000);
    expect(await driving).toMatchObject({ sent: 4, refused: 1 });
  });

  it('catches up where requests are due faster than timers are fine, and says how late it was', async () => {
    const { clock, sent, driving } = start({ arrivals: every(0.25), requestsMax: 40 });
    await clock.advanceBy(1_000);
    expect((await driving).behindMsMax).toBeLessThanOrEqual(1);
    expect(sent.at(-1)?.[1]).toBeLessThanOrEqual(11);
  });
});

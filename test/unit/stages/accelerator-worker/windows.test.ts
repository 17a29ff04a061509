import { describe, expect, it } from 'vitest';
import type { Dispatch } from '../../../../src/contracts/records.ts';
import { LatencySketch } from '../../../../src/core/latency/sketch.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { keyGroupOf } from '../../../../src/core/scores/key-group.ts';
import { scoreBin } from '../../../../src/core/scores/score-bin.ts';
import { ScoreHistogram } from '../../../../src/core/scores/score-histogram.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';
import { WorkerWindows } from '../../../../src/stages/accelerator-worker/windows.ts';
import { codecs, delivery, dispatch, scoreRequest } from '../records.fixture.ts';
import { handDrivenModel, scored } from './model.fixture.ts';

function start() {
  const clock = virtualClock({ startWallMs: 1_000_000 });
  const windows = new WorkerWindows(
    { worker: 'w1', incarnation: 'i1', pool: 'cpu' },
    clock,
    seededRandom(1).stream('scores'),
  );
  const score = (
    times: { inTopicMs?: number; queueMs?: number; computeMs?: number; nowMs?: number } = {},
    fields: Partial<Dispatch> = {},
    scoredAs: { candidates?: number; score?: number; bytesMoved?: number } = {},
  ): void => {
    const taken = delivery(dispatch({ inTopicMs: 1, extractMs: 2, routeMs: 3, ...fields }), {
      inTopicMs: times.inTopicMs ?? 0,
    });
    const result = scored(scoredAs.candidates ?? 2, scoredAs.score);
    if (result.status !== 'scored') throw new Error('not scored');
    windows.scored(
      { delivery: taken, request: scoreRequest(), model: handDrivenModel(), failures: 0 },
      {
        delivery: taken,
        request: scoreRequest(),
        queueMs: times.queueMs ?? 0,
        computeMs: times.computeMs ?? 0,
        worker: 'w1',
        simulated: false,
        nowMs: times.nowMs ?? 0,
      },
      result.scores,
      scoredAs.bytesMoved ?? 0,
    );
    windows.ended(taken.value, 'SCORED');
  };
  /** One request of a key, scored so. */
  const scoreAs = (
    values: Float32Array,
    fields: Partial<Dispatch>,
    bucketKey: string,
    stages?: Uint8Array,
  ): void => {
    const taken = delivery(dispatch(fields));
    const request = scoreRequest({ bucketKey });
    windows.scored(
      { delivery: taken, request, model: handDrivenModel(), failures: 0 },
      { delivery: taken, request, queueMs: 0, computeMs: 0, worker: 'w1', simulated: false, nowMs: 0 },
      { heads: [{ name: 'ctr', values }], scores: values, ...(stages === undefined ? {} : { stages }) },
      0,
    );
  };
  return { clock, windows, score, scoreAs };
}

const sketched = (bytes: Buffer) => LatencySketch.fromBytes(bytes);

describe('a window', () => {
  it('sketches where the time went', () => {
    const { windows, score } = start();
    for (let n = 1; n <= 100; n += 1)
      score({ inTopicMs: n, queueMs: 2 * n, computeMs: 3 * n, nowMs: 10 * n });
    const [window] = windows.take();
    if (window === undefined) throw new Error('no window');
    const { inTopicSketch, queueSketch, computeSketch, endToEndSketch } = window;
    const p50 = [inTopicSketch, queueSketch, computeSketch, endToEndSketch].map((bytes) => {
      expect(sketched(bytes).count).toBe(100);
      return sketched(bytes).quantileMs(0.5);
    });
    // In the topics 1 + n, in all 1 + n + 2 + 3 + 10 n, within the sketch's 1 %.
    for (const [place, expected] of [51, 100, 150, 556].entries())
      expect((p50[place] ?? 0) / expected).toBeCloseTo(1, 1);
  });

  it('counts outcomes, bytes, and the scores of each head', () => {
    const { windows, score } = start();
    score({}, {}, { candidates: 3, score: 0.25, bytesMoved: 10.4 });
    score({}, {}, { candidates: 1, score: 0.75, bytesMoved: 10.4 });
    windows.ended(dispatch(), 'EXPIRED');
    windows.ended(dispatch(), 'EXPIRED');
    const [window] = windows.take();
    expect(window).toMatchObject({ outcomes: { SCORED: 2, EXPIRED: 2 }, bytesMoved: 21 });
    expect(window?.heads).toHaveLength(1);
    expect(window?.heads[0]).toMatchObject({ name: 'ctr', count: 4, mean: (3 * 0.25 + 0.75) / 4 });
    const histogram = new Array<number>(20).fill(0);
    histogram[5] = 3;
    histogram[15] = 1;
    expect(window?.heads[0]?.histogram).toEqual(histogram);
  });

  it.each([
    ['below 0', -3, 0],
    ['0', 0, 0],
    ['1', 1, 19],
    ['above 1', 7, 19],
  ])('puts a score of %s into the bin at that end', (_name, value, bin) => {
    const { windows, score } = start();
    score({}, {}, { candidates: 1, score: value });
    expect(windows.take()[0]?.heads[0]?.histogram.indexOf(1)).toBe(bin);
  });

  it('samples one baseline candidate of each request, each as often as any other', () => {
    const { windows, scoreAs } = start();
    const values = new Float32Array([1, 2, 3, 4, 50, 60]);
    for (let n = 0; n < 4_000; n += 1) scoreAs(values, { baselineCandidates: 4 }, `user-${n}`);
    const head = windows.take()[0]?.heads[0];
    expect(head?.count).toBe(24_000);
    const sampled = new ScoreHistogram();
    for (const { histogram } of head?.samples ?? []) {
      const read = ScoreHistogram.fromBytes(histogram);
      if (read === undefined) throw new Error('no histogram');
      sampled.merge(read);
    }
    expect(sampled.entries().map(([bin]) => bin)).toEqual([1, 2, 3, 4].map(scoreBin));
    for (const [, count] of sampled.entries())
      expect(Math.abs(count - 1_000)).toBeLessThan(5 * Math.sqrt(750));
    expect(head?.samples.map(({ group }) => group).sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    for (const { group, count, sum, sumOfSquares, histogram } of head?.samples ?? []) {
      const entries = ScoreHistogram.fromBytes(histogram)?.entries() ?? [];
      const of = (bin: number): number => [1, 2, 3, 4].find((value) => scoreBin(value) === bin) ?? Number.NaN;
      expect(
        entries.reduce((all, [, times]) => all + times, 0),
        `group ${group}`,
      ).toBe(count);
      expect(entries.reduce((all, [bin, times]) => all + times * of(bin), 0)).toBe(sum);
      expect(entries.reduce((all, [bin, times]) => all + times * of(bin) ** 2, 0)).toBe(sumOfSquares);
    }
  });

  it('samples the requests of one key into one group, and what is not analysed not at all', () => {
    const { windows, scoreAs } = start();
    for (let n = 0; n < 5; n += 1) scoreAs(new Float32Array([0.5]), {}, 'ana');
    const { policy } = dispatch();
    scoreAs(new Float32Array([0.5]), { policy: { ...policy, analysed: false } }, 'ana');
    scoreAs(new Float32Array(0), { baselineCandidates: 0 }, 'ana');
    const [analysed, heavy] = windows.take();
    expect(analysed?.heads[0]?.samples).toMatchObject([{ group: keyGroupOf('ana'), count: 5 }]);
    expect(heavy?.heads[0]).toMatchObject({ count: 1, samples: [] });
  });

  it('is one per kernel, memory, model version, variant, arm, and analysed or not', () => {
    const { windows, score } = start();
    const policy = { ...dispatch().policy, arm: 'CANARY' as const };
    const changes: Partial<Dispatch>[] = [
      {},
      { kernel: 'sparse' },
      { memory: 'hbm' },
      { model: 'other' },
      { modelVersion: '2' },
      { variant: 'ENHANCED' },
      { policy },
      { policy: { ...policy, analysed: false } },
    ];
    for (const change of [...changes, ...changes]) score({}, change);
    const taken = windows.take();
    expect(taken).toHaveLength(changes.length);
    for (const window of taken) expect(window.outcomes).toEqual({ SCORED: 2 });
    expect(taken.at(-1)).toMatchObject({
      worker: 'w1',
      pool: 'cpu',
      kernel: 'dense',
      arm: 'CANARY',
      analysed: false,
    });
    expect(taken.filter(({ analysed }) => analysed)).toHaveLength(changes.length - 1);
  });

  it('has a sequence that rises, its start and its length on clocks of their own', async () => {
    const { clock, windows, score } = start();
    await clock.advanceBy(1_500);
    score();
    expect(windows.take()).toMatchObject([{ sequence: 1, windowStartMs: 1_000_000, windowMs: 1_500 }]);
    await clock.advanceBy(500);
    score();
    expect(windows.take()).toMatchObject([{ sequence: 2, windowStartMs: 1_001_500, windowMs: 500 }]);
  });

  it('where nothing happened is not sent, and none is sent twice', () => {
    const { windows, score } = start();
    expect(windows.take()).toEqual([]);
    score();
    windows.take();
    expect(windows.take()).toEqual([]);
  });

  it('can be written and read as its record', () => {
    const { windows, score } = start();
    score({ queueMs: 12 });
    const [window] = windows.take();
    if (window === undefined) throw new Error('no window');
    const read = codecs.for('WorkerWindow').decode(codecs.for('WorkerWindow').encode(window));
    expect(read).toEqual({ status: 'ok', value: window });
  });

  it('counts, of a cascade, the candidates that its last stage scored', () => {
    const { windows, scoreAs } = start();
    scoreAs(Float32Array.of(Number.NaN, 0.5, 0.25), { baselineCandidates: 3 }, 'k', Uint8Array.of(0, 1, 1));
    const [head] = windows.take()[0]?.heads ?? [];
    expect(head).toMatchObject({ name: 'ctr', count: 2, mean: 0.375 });
    expect(head?.histogram.reduce((sum, count) => sum + count, 0)).toBe(2);
    expect(head?.samples.map(({ count, sum }) => [count, [0.5, 0.25].includes(sum)])).toEqual([[1, true]]);
  });
});

import { describe, expect, it } from 'vitest';
import { makeHeadWindow, makeScoreSample } from '../../../../src/contracts/records.ts';
import type { HeadScores } from '../../../../src/core/rollout/score-observation.ts';
import { countOf, headShift, judgeMean } from '../../../../src/core/rollout/score-shift.ts';
import { scoreBin } from '../../../../src/core/scores/score-bin.ts';
import { ScoreHistogram } from '../../../../src/core/scores/score-histogram.ts';
import { ScoreWindows } from '../../../../src/stages/policy-controller/score-windows.ts';

type Window = Parameters<ScoreWindows['take']>[0];

function window(values: readonly number[], arm: Window['arm'] = 'STABLE', group = 3): Window {
  const histogram = new ScoreHistogram();
  for (const value of values) histogram.add(value);
  const sum = values.reduce((all, value) => all + value, 0);
  const sumOfSquares = values.reduce((all, value) => all + value * value, 0);
  const sample = makeScoreSample({
    group,
    count: values.length,
    sum,
    sumOfSquares,
    histogram: histogram.toBytes(),
  });
  const head = makeHeadWindow({
    name: 'ctr',
    count: values.length,
    mean: 0,
    histogram: [],
    samples: [sample],
  });
  return { model: 'ranker', arm, heads: [head] };
}

/** 0.001 … 1. */
const RISING = Array.from({ length: 1_000 }, (_, index) => (index + 1) / 1_000);

function frozen(values: readonly number[] = RISING): ScoreWindows {
  const windows = new ScoreWindows();
  windows.begin({});
  windows.take(window(values));
  expect(windows.observe()).toEqual({});
  return windows;
}

const ofHead = (windows: ScoreWindows): HeadScores => {
  const seen = windows.observe()['ranker/ctr'];
  if (seen === undefined) throw new Error('no scores');
  return seen;
};

const binsOf = ({ stable }: HeadScores): readonly number[] => stable[3]?.bins ?? [];

describe('the scores of a rollout', () => {
  it('are counted between tenths of the control, which are frozen before they count', () => {
    const windows = frozen();
    windows.take(window(RISING));
    const first = ofHead(windows);
    expect(first.edges).toHaveLength(10);
    expect(binsOf(first).reduce((sum, count) => sum + count, 0)).toBe(1_000);
    // A tenth, as far as bins of a sixteenth of an octave can tell.
    for (const count of binsOf(first)) expect(Math.abs(count - 100)).toBeLessThan(100);
    windows.take(window(RISING.map((value) => value * 3)));
    expect(ofHead(windows).edges).toEqual(first.edges);
  });

  it('are kept apart by arm and group of keys; whoever is not the stable arm is the candidate', () => {
    const windows = frozen();
    windows.take(window([0.5, 0.5], 'STABLE', 0));
    windows.take(window([0.5], 'CANARY', 7));
    const { stable, candidate } = ofHead(windows);
    expect(stable.map(countOf)).toEqual([2, 0, 0, 0, 0, 0, 0, 0]);
    expect(candidate.map(countOf)).toEqual([0, 0, 0, 0, 0, 0, 0, 1]);
    expect(stable[0]).toMatchObject({ sum: 1, sumOfSquares: 0.5 });
  });

  it('count once: a look has what came since the one before', () => {
    const windows = frozen();
    windows.take(window([0.5]));
    expect(countOf(ofHead(windows).stable[3] ?? { sum: 0, sumOfSquares: 0, bins: [] })).toBe(1);
    expect(windows.observe()).toEqual({});
  });

  it('are not told before enough of them are known', () => {
    const windows = frozen(RISING.slice(0, 499));
    windows.take(window([0.5]));
    expect(windows.observe()).toEqual({});
    windows.take(window([0.5]));
    expect(Object.keys(windows.observe())).toEqual(['ranker/ctr']);
  });

  it('that are constant are told from what lies on either side of them', () => {
    const windows = frozen(Array<number>(600).fill(0.5));
    windows.take(window([0.4, 0.5, 0.5, 0.6]));
    const seen = ofHead(windows);
    expect(seen.edges).toEqual([scoreBin(0.5), scoreBin(0.5) + 1]);
    expect(binsOf(seen)).toEqual([1, 2, 1]);
  });

  it('go on between the edges that a controller before has frozen', () => {
    const windows = new ScoreWindows();
    windows.begin({ 'ranker/ctr': [scoreBin(0.25), scoreBin(0.5)] });
    windows.take(window([0.1, 0.3, 0.7, 0.8]));
    expect(binsOf(ofHead(windows))).toEqual([1, 1, 2]);
  });

  it('of a head that the candidate alone has are told too', () => {
    const windows = new ScoreWindows();
    windows.begin({});
    windows.take(window(RISING.slice(0, 100), 'CANARY'));
    windows.observe();
    windows.take(window([0.5], 'CANARY'));
    expect(ofHead(windows).candidate.map(countOf)).toEqual([0, 0, 0, 1, 0, 0, 0, 0]);
  });

  it.each([
    ['a histogram that is none', { histogram: Buffer.from('05', 'hex') }],
    ['a group that there is not', { group: 8 }],
    ['a sum that is no number', { sum: Number.NaN }],
  ])('leave out %s', (_, fields) => {
    const windows = frozen();
    const bad = window([0.5]);
    const [head] = bad.heads;
    const samples = head?.samples.map((sample) => ({ ...sample, ...fields })) ?? [];
    windows.take({ ...bad, heads: head === undefined ? [] : [{ ...head, samples }] });
    windows.take(window([0.7]));
    expect(ofHead(windows).stable.reduce((sum, group) => sum + countOf(group), 0)).toBe(1);
  });

  it.each([0.1, 1 / 3, 7.7, 0.0007, -1_000.1])(
    'a head that always says %d has not moved, whatever is lost when its sums are written',
    (always) => {
      const constant = new Array<number>(971).fill(Math.fround(always));
      const windows = frozen(constant);
      windows.take(window(constant));
      windows.take(window(constant, 'STABLE', 5));
      windows.take(window(constant.slice(0, 53), 'CANARY'));
      windows.take(window(constant.slice(0, 54), 'CANARY', 5));
      const { meanShift, meanShiftError } = headShift(ofHead(windows));
      expect(judgeMean(meanShift, meanShiftError, 0.25)).toBe('within');
    },
  );

  it('of a head far from 0 what its mean loses in the log is no shift, and ten deviations are one', () => {
    const around = (mean: number, many: number): number[] =>
      Array.from({ length: many }, (_, place) => Math.fround(mean + 0.01 * Math.sin(place)));
    const windows = frozen(around(1_000, 971));
    const shiftTo = (mean: number): string => {
      for (const group of [3, 5]) {
        windows.take(window(around(1_000, 971), 'STABLE', group));
        windows.take(window(around(mean, 53), 'CANARY', group));
      }
      const { meanShift, meanShiftError } = headShift(ofHead(windows));
      return judgeMean(meanShift, meanShiftError, 0.25);
    };
    expect([shiftTo(1_000), shiftTo(1_000.1)]).toEqual(['within', 'over']);
  });
});

import { describe, expect, it } from 'vitest';
import { compareRuns, meanInterval } from '../../../../src/simulation/report/compare.ts';
import { studentT95 } from '../../../../src/simulation/report/student-t.ts';
import { madeReport } from './report.fixture.ts';

const report = (name: string, p50Ms: number | null, scored: number) => madeReport({ name, p50Ms, scored });

const figure = (comparison: ReturnType<typeof compareRuns>, name: string) =>
  comparison.differences.find((each) => each.figure === name);

describe('the interval of a mean', () => {
  // R: t.test(c(1.1, 2.3, 1.9, 2.8))$conf.int
  it.each([
    [[1.1, 2.3, 1.9, 2.8], { low: 0.880537, high: 3.16946 }],
    [[5, 5, 5], { low: 5, high: 5 }],
    [[0, 2], { low: -11.706, high: 13.706 }],
  ])('of %j is %j', (values, interval) => {
    const found = meanInterval(values);
    expect(found?.low).toBeCloseTo(interval.low, 2);
    expect(found?.high).toBeCloseTo(interval.high, 2);
  });

  it.each([[[]], [[1]]])('of %j is none', (values) => expect(meanInterval(values)).toBeNull());

  // NIST: 2.042 at 30; R: qt(0.975, c(31, 60, 1000)) = 2.0395, 2.0003, 1.9623
  it.each([
    [1, 12.706],
    [30, 2.042],
    [31, 2.0395],
    [60, 2.0003],
    [1_000, 1.9623],
  ])('takes the quantile at %i degrees of freedom: %f', (degrees, quantile) => {
    expect(studentT95(degrees)).toBeCloseTo(quantile, 2);
  });
});

describe('two policies', () => {
  const first = [10, 20, 30].map((p50) => report('live', p50, 90));

  it('are held against each other run by run: what both share between seeds is no noise', () => {
    const other = [11, 21, 31].map((p50) => report('next', p50, 90));
    const found = compareRuns(first, other);
    expect(found).toMatchObject({ first: 'live@1', other: 'next@1' });
    expect(figure(found, 'latency p50')).toMatchObject({
      pairs: 3,
      first: 20,
      other: 21,
      difference: 1,
      interval95: { low: 1, high: 1 },
      isDistinct: true,
    });
    expect(figure(found, 'scored')).toMatchObject({ difference: 0, isDistinct: false });
  });

  it('differ by no accident only where the interval leaves out 0', () => {
    const other = [12, 18, 31].map((p50) => report('next', p50, 90));
    expect(figure(compareRuns(first, other), 'latency p50')).toMatchObject({ isDistinct: false });
  });

  it('are not compared by what one of them lacks, and not judged on one run', () => {
    const other = [report('next', null, 80), report('next', 5, 80), report('next', null, 80)];
    expect(figure(compareRuns(first, other), 'latency p50')).toMatchObject({
      pairs: 1,
      first: 20,
      other: 5,
      interval95: null,
      isDistinct: false,
    });
  });
});

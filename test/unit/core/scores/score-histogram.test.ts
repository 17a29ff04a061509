import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SCORE_BINS, scoreBin } from '../../../../src/core/scores/score-bin.ts';
import { ScoreHistogram } from '../../../../src/core/scores/score-histogram.ts';

const score = fc.float({ noNaN: true, noDefaultInfinity: true });
const scores = fc.array(score, { maxLength: 200 });

function histogramOf(values: readonly number[]): ScoreHistogram {
  const histogram = new ScoreHistogram();
  for (const value of values) histogram.add(value);
  return histogram;
}

describe('a histogram of scores', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(scores, (values) => {
        const written = histogramOf(values);
        const read = ScoreHistogram.fromBytes(written.toBytes());
        expect(read?.count).toBe(values.length);
        expect(read?.entries()).toEqual(written.entries());
      }),
    );
  });

  it('of two parts is that of the whole', () => {
    fc.assert(
      fc.property(scores, scores, (some, others) => {
        const merged = histogramOf(some);
        merged.merge(histogramOf(others));
        expect(merged.entries()).toEqual(histogramOf([...some, ...others]).entries());
        expect(merged.count).toBe(some.length + others.length);
      }),
    );
  });

  it('is written in as many bytes as docs/contracts.md says', () => {
    expect(histogramOf([]).toBytes()).toHaveLength(0);
    expect(histogramOf([0.125, 0.125, 0.125]).toBytes().toString('hex')).toBe('920703');
    expect(
      histogramOf([...Array(300).fill(0), 0])
        .toBytes()
        .toString('hex'),
    ).toBe('8105ad02');
  });

  it('never throws on other bytes, and reads none that say more than they can', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const read = ScoreHistogram.fromBytes(bytes);
        for (const [bin, count] of read?.entries() ?? []) {
          expect(bin).toBeLessThan(SCORE_BINS);
          expect(count).toBeGreaterThan(0);
        }
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['a distance without a count', '05'],
    ['a number that does not end', 'ffffffffff01'],
    ['a count beyond 32 bits', '00ffffffff7f'],
    ['a bin that there is not', 'ffff7f01'],
    ['a count of 0', '0500'],
    ['one good bin and a piece', '05010a'],
  ])('is not read from %s', (_, hex) => {
    expect(ScoreHistogram.fromBytes(Buffer.from(hex, 'hex'))).toBeUndefined();
  });

  it('has its bins in the order of the scores', () => {
    const entries = histogramOf([3, -1, 0, 0.5, 3]).entries();
    expect(entries).toEqual([-1, 0, 0.5, 3].map((value) => [scoreBin(value), value === 3 ? 2 : 1]));
  });
});

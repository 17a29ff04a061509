import { type HeadWindow, makeHeadWindow, makeScoreSample } from '../../contracts/records.ts';
import { ScoreHistogram } from '../../core/scores/score-histogram.ts';

const EQUAL_BINS = 20;

interface SampledScores {
  sum: number;
  sumOfSquares: number;
  readonly histogram: ScoreHistogram;
}

/** The scores of one head in one window: all of them in equal bins of [0, 1], and one of each request by groups of keys. */
export class HeadScores {
  #count = 0;
  #sum = 0;
  readonly #equalBins = new Float64Array(EQUAL_BINS);
  readonly #samples = new Map<number, SampledScores>();

  addAll(values: Float32Array): void {
    const bins = this.#equalBins;
    let sum = 0;
    for (let i = 0; i < values.length; i++) {
      const value = values[i] ?? 0;
      sum += value;
      const bin = Math.min(EQUAL_BINS - 1, Math.max(0, Math.floor(value * EQUAL_BINS)));
      bins[bin] = (bins[bin] ?? 0) + 1;
    }
    this.#sum += sum;
    this.#count += values.length;
  }

  /** @param group of the request's key: see `keyGroupOf` */
  sample(group: number, value: number): void {
    let sampled = this.#samples.get(group);
    if (sampled === undefined) {
      sampled = { sum: 0, sumOfSquares: 0, histogram: new ScoreHistogram() };
      this.#samples.set(group, sampled);
    }
    sampled.sum += value;
    sampled.sumOfSquares += value * value;
    sampled.histogram.add(value);
  }

  toWindow(name: string): HeadWindow {
    return makeHeadWindow({
      name,
      count: this.#count,
      mean: this.#count === 0 ? 0 : this.#sum / this.#count,
      histogram: [...this.#equalBins],
      samples: [...this.#samples].map(([group, { sum, sumOfSquares, histogram }]) =>
        makeScoreSample({
          group,
          count: histogram.count,
          sum,
          sumOfSquares,
          histogram: histogram.toBytes(),
        }),
      ),
    });
  }
}

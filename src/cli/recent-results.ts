import { rankedCandidates } from '../client/ranking.ts';
import { readIds } from '../client/tensors.ts';
import type { ScoredResult } from '../contracts/records.ts';
import { RecentRate } from '../core/latency/rate.ts';
import type { Clock } from '../ports/clock.ts';
import type { Catalogue } from '../traffic/catalogue.ts';

const SAMPLE_EVERY_MS = 2_000;
const TITLES = 3;

/** What the live table shows of results: their rate, and now and then one as a person would see it. */
export class RecentResults {
  readonly #clock: Clock;
  readonly #titles: ReadonlyMap<string, string>;
  readonly #rate: RecentRate;
  #sample: { user: string; titles: readonly string[] } | undefined;
  #sampledAtMs = Number.NEGATIVE_INFINITY;

  constructor(catalogue: Catalogue, clock: Clock) {
    this.#clock = clock;
    this.#titles = new Map(
      catalogue.itemIds.map((id, index) => [String(id), catalogue.titles[index] ?? String(id)]),
    );
    this.#rate = new RecentRate(1_000, clock.monotonicMs());
  }

  take(result: ScoredResult): void {
    const nowMs = this.#clock.monotonicMs();
    this.#rate.add(1, nowMs);
    if (
      nowMs - this.#sampledAtMs < SAMPLE_EVERY_MS ||
      result.outcome !== 'SCORED' ||
      result.candidateIds === null
    )
      return;
    this.#sampledAtMs = nowMs;
    this.#sample = { user: result.requestId, titles: this.#best(result) };
  }

  ratePerSecond(): number {
    return this.#rate.perMs(this.#clock.monotonicMs()) * 1_000;
  }

  sample(): { user: string; titles: readonly string[] } | undefined {
    return this.#sample;
  }

  #best(result: ScoredResult): string[] {
    const ids = result.candidateIds === null ? [] : readIds(result.candidateIds);
    return rankedCandidates(result)
      .slice(0, TITLES)
      .map((index) => this.#titles.get(ids[index] ?? '') ?? ids[index] ?? '?');
  }
}

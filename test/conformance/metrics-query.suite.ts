import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MetricsQuery } from '../../src/ports/metrics-query.ts';

/**
 * Queries that any Prometheus answers alike, with no data of its own, and what the answer is. An adapter over something that does not understand
 * PromQL is told so.
 */
export const QUERIES: readonly { query: string; values: readonly number[] }[] = [
  { query: 'vector(0.25)', values: [0.25] },
  { query: '2.5', values: [2.5] },
  { query: 'vector(3) or label_replace(vector(-1), "side", "left", "", "")', values: [3, -1] },
  { query: 'vector(1) / 0', values: [Number.POSITIVE_INFINITY] },
  { query: '-1 / 0', values: [Number.NEGATIVE_INFINITY] },
  { query: 'vector(0) / 0', values: [Number.NaN] },
  { query: 'vector(1) > 2', values: [] },
  // more than an URL takes
  { query: `vector(0.5) ${'+ 0 '.repeat(500)}`, values: [0.5] },
];

/** What it says is wrong is up to the adapter. */
export const REFUSED = 'sum(';

export interface MetricsFactory {
  query: MetricsQuery;
  close(): Promise<void>;
}

export function metricsQueryConformance(name: string, open: () => Promise<MetricsFactory>): void {
  describe(`metrics query: ${name}`, () => {
    let opened: MetricsFactory;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened?.close());
    const read = (query: string) => opened.query.read(query);

    it.each([
      ['a vector of one series', 'vector(0.25)', { series: 1, lowest: 0.25, highest: 0.25 }],
      ['a scalar', '2.5', { series: 1, lowest: 2.5, highest: 2.5 }],
      ['the range of several series', QUERIES[2]?.query, { series: 2, lowest: -1, highest: 3 }],
      [
        'an infinity, as the largest number',
        'vector(1) / 0',
        { series: 1, lowest: Number.MAX_VALUE, highest: Number.MAX_VALUE },
      ],
      ['minus infinity', '-1 / 0', { series: 1, lowest: -Number.MAX_VALUE, highest: -Number.MAX_VALUE }],
      ['a long query', QUERIES[7]?.query, { series: 1, lowest: 0.5, highest: 0.5 }],
    ])('reads %s', async (_, query = '', reading) => {
      expect(await read(query)).toEqual(reading);
    });

    it.each([
      ['without a series', 'vector(1) > 2', /no series/],
      ['that is NaN', 'vector(0) / 0', /NaN/],
      ['that is none', REFUSED, /./],
    ])('has no number of a query %s, and says why', async (_, query, reason) => {
      expect(await read(query)).toEqual({ failed: expect.stringMatching(reason) });
    });

    it('reads many at once, each for itself', async () => {
      const readings = await Promise.all(
        Array.from({ length: 50 }, (_, n) => read(n % 2 ? '2.5' : 'vector(0.25)')),
      );
      expect(readings.map((reading) => ('failed' in reading ? reading.failed : reading.lowest))).toEqual(
        Array.from({ length: 50 }, (_, n) => (n % 2 ? 2.5 : 0.25)),
      );
    });
  });
}

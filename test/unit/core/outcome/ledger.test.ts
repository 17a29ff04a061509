import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { identityKey } from '../../../../src/core/outcome/identity.ts';
import { createLedger, type LedgerResult, type LedgerSummary } from '../../../../src/core/outcome/ledger.ts';
import { OUTCOME_KINDS } from '../../../../src/core/outcome/outcome.ts';

const result = (key: string, offset: number, changes: Partial<LedgerResult> = {}): LedgerResult => ({
  identityKey: key,
  partition: 0,
  offset,
  outcome: 'scored',
  latencyMs: 10,
  ...changes,
});

function book(ingress: readonly string[], results: readonly LedgerResult[]): LedgerSummary {
  const ledger = createLedger();
  for (const key of ingress) ledger.ingress(key);
  for (const one of results) ledger.result(one);
  return ledger.summary();
}

const NONE = { scored: 0, degraded: 0, expired: 0, rejected: 0, deadLettered: 0 };

describe('the ledger', () => {
  it('is balanced and empty at first', () => {
    expect(book([], [])).toEqual({
      ingress: 0,
      outcomes: NONE,
      inFlight: 0,
      duplicatesVisible: 0,
      duplicatesDropped: 0,
      unknown: 0,
      unreadable: 0,
      latencyMs: { p50: null, p99: null },
      balanced: true,
    });
  });

  it('counts each outcome by its name', () => {
    const keys = OUTCOME_KINDS.map((kind) => `${kind}`);
    const results = OUTCOME_KINDS.map((outcome, offset) => result(outcome, offset, { outcome }));
    expect(book([...keys, 'waiting'], results)).toMatchObject({
      ingress: 6,
      outcomes: { scored: 1, degraded: 1, expired: 1, rejected: 1, deadLettered: 1 },
      inFlight: 1,
      balanced: false,
    });
  });

  it('shows the result with the lowest offset, whenever it comes', () => {
    const results = [
      result('a', 7, { outcome: 'scored', latencyMs: 70 }),
      result('a', 3, { outcome: 'expired', latencyMs: 30 }),
      result('a', 9, { outcome: 'degraded', latencyMs: 90 }),
    ];
    expect(book(['a'], results)).toMatchObject({
      outcomes: { ...NONE, expired: 1 },
      duplicatesDropped: 2,
      duplicatesVisible: 0,
      latencyMs: { p50: 30, p99: 30 },
      balanced: true,
    });
  });

  it('sees an answer on two partitions as two answers', () => {
    const results = [result('a', 3), result('a', 4), result('a', 3, { partition: 1 })];
    expect(book(['a'], results)).toMatchObject({
      outcomes: { ...NONE, scored: 1 },
      duplicatesVisible: 1,
      duplicatesDropped: 1,
      balanced: false,
    });
  });

  it('counts a record that is read again once', () => {
    const results = [result('a', 3), result('a', 3), result('a', 4), result('a', 4)];
    expect(book(['a', 'a'], results)).toMatchObject({ ingress: 1, duplicatesDropped: 1, balanced: true });
  });

  it('reports results of requests that never were, and forgives those that come before their request', () => {
    expect(book(['a'], [result('a', 1), result('b', 2), result('b', 3)])).toMatchObject({
      unknown: 2,
      unreadable: 0,
      balanced: false,
    });
    const ledger = createLedger();
    ledger.result(result('a', 1));
    expect(ledger.summary()).toMatchObject({ ingress: 0, unknown: 1, balanced: false });
    ledger.ingress('a');
    expect(ledger.summary()).toMatchObject({ ingress: 1, unknown: 0, inFlight: 0, balanced: true });
  });

  it('counts a result that cannot be read by its place, once, and is not balanced then', () => {
    const ledger = createLedger();
    ledger.ingress('a');
    for (const offset of [4, 4, 5]) ledger.unreadable(0, offset);
    expect(ledger.summary()).toMatchObject({ unreadable: 2, inFlight: 1, unknown: 0, balanced: false });
  });

  it('gives percentiles by nearest rank', () => {
    const keys = Array.from({ length: 200 }, (_, i) => `${i}`);
    const results = keys.map((key, i) => result(key, i, { latencyMs: 200 - i }));
    expect(book(keys, results).latencyMs).toEqual({ p50: 100, p99: 198 });
  });

  it('names identities by topic, partition and offset', () => {
    expect(identityKey({ topic: 'millrace.ingress.v1', partition: 3, offset: 12 })).toBe(
      'millrace.ingress.v1/3/12',
    );
  });
});

/** What happened to one request: how it ended, if it did, and how many copies of its result followed. */
const fates = fc.array(
  fc.record({
    outcome: fc.option(fc.constantFrom(...OUTCOME_KINDS)),
    copies: fc.array(fc.constantFrom(...OUTCOME_KINDS), { maxLength: 3 }),
    strayed: fc.boolean(),
    reachedIngress: fc.oneof(
      { weight: 9, arbitrary: fc.constant(true) },
      { weight: 1, arbitrary: fc.constant(false) },
    ),
    readAgain: fc.nat({ max: 2 }),
  }),
  { maxLength: 30 },
);

type Fate = typeof fates extends fc.Arbitrary<infer T extends readonly unknown[]> ? T[number] : never;

/** The results of a request: the answer first on its partition, then copies; the last copy on another one where it strayed. */
function resultsOf(fate: Fate, index: number): LedgerResult[] {
  if (fate.outcome === null) return [];
  return [fate.outcome, ...fate.copies].map((outcome, copy) => ({
    identityKey: `${index}`,
    partition: strays(fate) && copy === fate.copies.length ? 1 : 0,
    offset: copy * 1_000 + index,
    outcome,
    latencyMs: copy === 0 ? index : 1e9,
  }));
}

const strays = (fate: Fate): boolean => fate.strayed && fate.copies.length > 0;

describe('the ledger, whatever is duplicated and in whatever order it comes,', () => {
  const events = fates.chain((drawn) => {
    const ingress = drawn.flatMap((fate, i) =>
      fate.reachedIngress ? Array<string>(1 + fate.readAgain).fill(`${i}`) : [],
    );
    const results = drawn.flatMap((fate, i) =>
      Array.from({ length: 1 + fate.readAgain }, () => resultsOf(fate, i)).flat(),
    );
    const all = [...ingress.map((key) => ({ key })), ...results.map((one) => ({ one }))];
    return fc.record({
      drawn: fc.constant(drawn),
      shuffled: fc.shuffledSubarray(all, { minLength: all.length, maxLength: all.length }),
    });
  });

  it('counts every request once and every result as one thing', () => {
    fc.assert(
      fc.property(events, ({ drawn, shuffled }) => {
        const ledger = createLedger();
        for (const event of shuffled) 'key' in event ? ledger.ingress(event.key) : ledger.result(event.one);
        const summary = ledger.summary();

        const known = drawn.filter(({ reachedIngress }) => reachedIngress);
        const answered = known.filter(({ outcome }) => outcome !== null);
        const count = (kind: string) => answered.filter(({ outcome }) => outcome === kind).length;
        expect(summary.ingress).toBe(known.length);
        expect(summary.inFlight).toBe(known.length - answered.length);
        expect(summary.outcomes).toEqual({
          scored: count('scored'),
          degraded: count('degraded'),
          expired: count('expired'),
          rejected: count('rejected'),
          deadLettered: count('dead-lettered'),
        });

        const visible = answered.filter(strays).length;
        const results = drawn.flatMap(resultsOf).length;
        expect(summary.duplicatesVisible).toBe(visible);
        expect(
          answered.length + summary.duplicatesVisible + summary.duplicatesDropped + summary.unknown,
        ).toBe(results);
        expect(summary.balanced).toBe(
          known.length === answered.length && visible === 0 && summary.unknown === 0,
        );
        if (answered.length > 0) expect(summary.latencyMs.p99).toBeLessThan(drawn.length);
      }),
      { numRuns: 300 },
    );
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type RouterReport,
  readRouterReport,
  refusalsOf,
  writeRouterReport,
} from '../../../../src/core/rollout/router-report.ts';

const reports: fc.Arbitrary<RouterReport> = fc.oneof(
  fc.record({ status: fc.constant('applied' as const), epoch: fc.maxSafeNat() }),
  fc.record({
    status: fc.constant('refused' as const),
    epoch: fc.maxSafeNat(),
    what: fc.constantFrom('stable', 'canary', 'pointer'),
    reason: fc.string(),
  }),
);

describe('a router’s report', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(reports, (report) => {
        expect(readRouterReport(writeRouterReport(report))).toEqual(report);
      }),
    );
  });

  it.each([
    ['nothing', ''],
    ['no JSON', '{'],
    ['null', 'null'],
    ['a number', '7'],
    ['a list', '[]'],
    ['no epoch', '{"status":"applied"}'],
    ['an epoch that is none', '{"status":"applied","epoch":"7"}'],
    ['a fraction of an epoch', '{"status":"applied","epoch":1.5}'],
    ['another status', '{"status":"maybe","epoch":7}'],
    ['a refusal of nothing', '{"status":"refused","epoch":7,"reason":"x"}'],
    ['a refusal without a reason', '{"status":"refused","epoch":7,"what":"canary"}'],
    ['a refusal of something else', '{"status":"refused","epoch":7,"what":"model","reason":"x"}'],
  ])('that says %s is none', (_name, text) => {
    expect(readRouterReport(text)).toBeUndefined();
  });

  it('is none, and never an error, whatever it says', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        expect(() => readRouterReport(text)).not.toThrow();
      }),
    );
  });
});

describe('the refusals of an epoch', () => {
  const refused = (epoch: number, reason: string): string =>
    writeRouterReport({ status: 'refused', epoch, what: 'canary', reason });

  it('are those of routers that do not run what its pointer says', () => {
    const reports = new Map([
      ['r#1', refused(7, 'digest')],
      ['r#2', refused(6, 'before')],
      ['r#3', writeRouterReport({ status: 'applied', epoch: 7 })],
      ['r#4', '{'],
    ]);
    expect(refusalsOf(reports, 7)).toEqual(['r#1: canary: digest']);
  });

  it('are at most 20, of at most 500 characters: they go into the log with each look', () => {
    const reports = new Map(
      Array.from({ length: 5_000 }, (_, at) => [`r#${at}`, refused(7, 'x'.repeat(9_000))]),
    );
    const found = refusalsOf(reports, 7);
    expect(found).toHaveLength(20);
    expect(found.every((text) => text.length === 500)).toBe(true);
  });
});

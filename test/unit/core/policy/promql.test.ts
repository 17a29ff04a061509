import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { promqlProblem } from '../../../../src/core/policy/promql.ts';

describe('promqlProblem', () => {
  it.each([
    'up',
    'up{job="api", instance=~".+:9090"}',
    '{__name__="up"}',
    '{"http.requests", method="GET"}',
    'rate(http_requests_total{code=~"5.."}[5m])',
    'sum by (job) (rate(a[5m])) / sum by (job) (rate(b[5m]))',
    'sum(rate(a[5m])) without (instance,) > bool 0.5',
    'a * on (pool) group_left (team) b',
    'histogram_quantile(0.99, sum(rate(x_bucket[5m])) by (le))',
    'max_over_time(rate(a[1m])[1h:30s]) or vector(0)',
    'max_over_time(job:errors:rate5m[1h:])',
    'a offset 1h30m @ 1609746000 - -a @ start()',
    '-(1 + 2e3) ^ 2 % 0x1F',
    'topk(3, count_values("version", build_info))',
    "label_replace(up, 'a', '$1', 'b', `(.*)`)",
    'a # what it is\n + b',
    'Inf - NaN',
    'a unless b and c',
    'time() - 5m',
  ])('finds nothing in %s', (query) => {
    expect(promqlProblem(query)).toBeUndefined();
  });

  it.each([
    ['  ', 2, 'there is no query'],
    ['rate(a[5m]', 4, 'a bracket that is not closed by )'],
    ['rate(a[5m])) > 1', 11, ') is one thing too many'],
    ['rate(a[5 minutes])', 9, 'minutes where ] is expected'],
    ['rate(a[m])', 7, 'm is no duration, such as 5m or 1h30m'],
    ['up{job=api}', 7, 'the value of a label is no text in quotes'],
    ['up{job}', 6, 'a label without one of = != =~ !~'],
    ['up{job="api"', 2, 'a bracket that is not closed by }'],
    ['up{job="api}', 7, 'a text that has no end'],
    ['a b', 2, 'b is one thing too many'],
    ['a +', 3, 'something is missing at its end'],
    ['a / / b', 4, '/ where a value is expected'],
    ['rates(a[5m])', 0, 'there is no function rates; did you mean rate?'],
    ['frobnicate(a)', 0, 'there is no function frobnicate'],
    ['sum by job (a)', 7, 'a list of labels in brackets is missing'],
    ['rate(a[$__rate_interval])', 7, 'a character that means nothing here'],
    ['a offset soon', 9, 'soon is no duration, such as 5m or 1h30m'],
    ['a @ soon', 4, 'soon is no time for @'],
    ['a == = b', 5, '= where a value is expected'],
  ])('finds what is wrong in %j', (query, at, what) => {
    expect(promqlProblem(query)).toEqual({ at, what });
  });

  it('says nothing of what nests deeper than it looks', () => {
    expect(promqlProblem(`${'('.repeat(2_000)}1${')'.repeat(2_000)}`)).toBeUndefined();
  });

  it('reads any text, and places what is wrong in it', () => {
    const piece = fc.constantFrom(
      'rate(',
      'a',
      '{',
      '}',
      '[5m]',
      '"x"',
      '+',
      ')',
      'by',
      '(',
      ',',
      '=',
      ' ',
      '`',
      '@',
      ':',
    );
    const texts = fc.oneof(
      fc.string(),
      fc.array(piece).map((pieces) => pieces.join('')),
    );
    fc.assert(
      fc.property(texts, (query) => {
        const problem = promqlProblem(query);
        if (problem === undefined) return;
        expect(problem.at).toBeGreaterThanOrEqual(0);
        expect(problem.at).toBeLessThanOrEqual(query.length);
        expect(problem.what).not.toBe('');
      }),
    );
  });
});

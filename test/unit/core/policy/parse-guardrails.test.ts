import { describe, expect, it } from 'vitest';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';

const parse = (guardrails: string) =>
  parsePolicy(`
apiVersion: millrace/v1
kind: RoutingPolicy
name: feed
version: 1
tree: [{id: rest, to: {accelerator: cpu, kernel: dense}}]
rollout:
  guardrails: ${guardrails}
`).rollout.guardrails;

const query = (fields: string): string => `{queries: [{name: ctr, query: 'up', ${fields}}]}`;

describe('the guardrails of a policy', () => {
  it('are read with all that they may hold', () => {
    const text = `
      scorePsi: 0.5
      scoreMeanShift: 1
      queries:
        - {name: ctr, query: 'sum(rate(clicks[5m])) / sum(rate(shown[5m]))', min: 0.01, for: 1m, breach: roll-back}
        - {name: errors, query: errors, min: -1, max: 0.5}`;
    expect(parse(text)).toEqual({
      scorePsiMax: 0.5,
      scoreMeanShiftMax: 1,
      queries: [
        {
          name: 'ctr',
          query: 'sum(rate(clicks[5m])) / sum(rate(shown[5m]))',
          min: 0.01,
          max: undefined,
          forMs: 60_000,
          breach: 'roll-back',
        },
        { name: 'errors', query: 'errors', min: -1, max: 0.5, forMs: 0, breach: 'hold' },
      ],
    });
    expect(parse('{}')).toEqual({ scorePsiMax: undefined, scoreMeanShiftMax: undefined, queries: [] });
  });

  it.each([
    ['no map', '[]', /rollout\.guardrails.*something else is expected/],
    ['a limit below 0', '{scorePsi: -1}', /scorePsi.*out of bounds/],
    ['an unknown field', '{scorePsy: 1}', /an unknown field.*scorePsi/],
    ['a query without a name', "{queries: [{query: 'up', max: 1}]}", /`name` is missing/],
    ['a query without a text', '{queries: [{name: ctr, max: 1}]}', /`query` is missing/],
    ['a query without a bound', query('for: 1s'), /without a bound guards nothing/],
    ['bounds the wrong way round', query('min: 2, max: 1'), /bounds that no value keeps/],
    ['a bound that is no number', query('max: .nan'), /max.*out of bounds/],
    ['another thing to do', query('max: 1, breach: page'), /breach.*hold, roll-back/],
    ['an empty query', "{queries: [{name: ctr, query: '', max: 1}]}", /query.*PromQL/],
    ['a query too long', `{queries: [{name: ctr, query: '${'x'.repeat(2_049)}', max: 1}]}`, /at most 2048/],
    [
      'two queries of one name',
      "{queries: [{name: ctr, query: 'a', max: 1}, {name: ctr, query: 'b', max: 1}]}",
      /two queries of one name/,
    ],
    [
      'too many queries',
      `{queries: [${Array.from({ length: 101 }, (_, n) => `{name: q${n}, query: a, max: 1}`).join(', ')}]}`,
      /too many queries.*at most 100/,
    ],
  ])('are refused with %s', (_, text, problem) => {
    expect(() => parse(text)).toThrow(problem);
  });
});

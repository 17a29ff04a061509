import { describe, expect, it } from 'vitest';
import { namedModels } from '../../../../src/core/policy/document.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';

const policy = (models: string): string => `
apiVersion: millrace/v1
kind: RoutingPolicy
name: feed
version: 1
models: ${models}
tree: [{id: all, to: {accelerator: cpu, kernel: dense}}]
`;
const read = (models: string) => Object.fromEntries(parsePolicy(policy(models)).models);

describe('models of a policy', () => {
  it.each([
    ['{ranker: "3"}', { ranker: { baseline: '3', enhanced: '3' } }],
    ['{ranker: 3}', { ranker: { baseline: '3', enhanced: '3' } }],
    ['{ranker: {baseline: "3", enhanced: 4}}', { ranker: { baseline: '3', enhanced: '4' } }],
    ['{ranker: {enhanced: "4"}}', { ranker: { baseline: undefined, enhanced: '4' } }],
    ['{}', {}],
  ])('%s', (text, models) => {
    expect(read(text)).toEqual(models);
  });

  it.each([
    ['{Ranker: "3"}', /models\.Ranker.*not the name of a model family/s],
    ['{ranker: latest}', /models\.ranker.*not a version of a model.*"latest"/s],
    ['{ranker: 0}', /not a version of a model/],
    ['{ranker: 1.5}', /not a version of a model/],
    ['{ranker: {}}', /no version is named/],
    ['{ranker: {base: "3"}}', /unknown field.*allowed: baseline, enhanced/],
    ['{ranker: [3]}', /not a version of a model/],
    ['ranker', /something else is expected/],
  ])('%s is refused', (text, reason) => {
    expect(() => read(text)).toThrow(reason);
  });

  it('are named once each', () => {
    expect(namedModels(parsePolicy(policy('{ranker: 3, ads: {baseline: 1, enhanced: 2}}')))).toEqual([
      'ads@1',
      'ads@2',
      'ranker@3',
    ]);
  });
});

import { describe, expect, it } from 'vitest';
import { readCondition } from '../../../../src/core/policy/condition.ts';
import type { SignalType } from '../../../../src/core/policy/document.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { DocumentError } from '../../../../src/core/policy/problem.ts';
import { WEIGHT_MAX, weightOf } from '../../../../src/core/policy/weight.ts';

const SIGNALS = new Map<string, SignalType>([
  ['x', 'double'],
  ['y', 'double'],
  ['flag', 'bool'],
  ['surface', 'string'],
]);

describe('weightOf', () => {
  it.each([
    ['flag', 1],
    ['x > 1.0', 1],
    ['x > 1.0 && !(y < 2.0 || flag)', 3],
    ['x in [1.0, 2.0, 3.0]', 3],
    ['x * 2.0 + y in [1.0, 2.0]', 6],
    ['-x > y', 2],
    ["surface in ['a', 'b']", 2],
  ])('%s weighs %d', (text, expected) => {
    const { when, problems } = readCondition(text, SIGNALS);
    expect(problems).toEqual([]);
    expect(when && weightOf(when.condition)).toBe(expected);
  });
});

describe('a policy', () => {
  const branches = (count: number, items: number): string =>
    Array.from(
      { length: count },
      (_, n) =>
        `  - {id: b${n}, when: 'x in [${Array.from({ length: items }, (_item, place) => place).join(',')}]', to: {accelerator: cpu, kernel: dense}}`,
    ).join('\n');
  const policy = (tree: string): string =>
    `apiVersion: millrace/v1\nkind: RoutingPolicy\nname: heavy\nversion: 1\nsignals: {x: double}\ntree:\n${tree}\n  - {id: rest, to: {accelerator: cpu, kernel: dense}}\n`;

  it('may be as heavy as the limit', () => {
    expect(WEIGHT_MAX).toBe(4_096);
    expect(parsePolicy(policy(branches(32, 128))).tree).toHaveLength(33);
  });

  it('that is heavier is refused once, where it becomes too much', () => {
    let problems: DocumentError['problems'] = [];
    try {
      parsePolicy(policy(branches(40, 128)));
    } catch (error) {
      if (error instanceof DocumentError) problems = error.problems;
    }
    expect(problems).toMatchObject([
      { path: 'tree[32].when', what: expect.stringContaining('too many to check') },
    ]);
  });
});

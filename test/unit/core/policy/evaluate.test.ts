import { describe, expect, it } from 'vitest';
import { readCondition } from '../../../../src/core/policy/condition.ts';
import type { SignalType } from '../../../../src/core/policy/document.ts';
import { evaluateCondition, type SignalReader } from '../../../../src/core/policy/evaluate.ts';
import { SIGNALS } from './arbitraries.ts';

const signals = new Map<string, SignalType>(Object.entries(SIGNALS));
/** b, m, g and t are missing. */
const reader: SignalReader = {
  number: (name) => ({ a: 2, n: 3, f: 1 })[name] ?? Number.NaN,
  text: (name) => ({ s: 'eu' })[name],
};

describe('evaluateCondition', () => {
  it.each<[string, boolean | undefined]>([
    ['a > 1', true],
    ['a > 2', false],
    ['a >= 2 && a <= 2 && a == 2', true],
    ['a != 2', false],
    ['a * 2 - 1 == n', true],
    ['n / 2 == 1.5', true],
    ['n % 2 == 1', true],
    ['-a == -2', true],
    ['n in [1, 3]', true],
    ['n in []', false],
    ['f', true],
    ['!f', false],
    ['f == true && f != false', true],
    ['s == "eu"', true],
    ['s != "eu"', false],
    ['s in ["us", "eu"]', true],
    ['a > tune("x", 1, min: 0, max: 5, step: 1)', false],
    // A comparison that reads something missing is neither true nor false …
    ['b > 1', undefined],
    ['b <= 1', undefined],
    ['b == b', undefined],
    ['b != 1', undefined],
    ['!(b > 1)', undefined],
    ['b in [1]', undefined],
    ['b in []', undefined],
    ['a + b > 1', undefined],
    ['b * 0 == 0', undefined],
    ['g', undefined],
    ['!g', undefined],
    ['f == g', undefined],
    ['t == "eu"', undefined],
    ['t != "eu"', undefined],
    ['s == t', undefined],
    ['0 / 0 == 1', undefined],
    // … and decides nothing where the rest does.
    ['f || b > 1', true],
    ['b > 1 || f', true],
    ['!f && b > 1', false],
    ['b > 1 && !f', false],
    ['f && b > 1', undefined],
    ['b > 1 && f', undefined],
    ['!f || b > 1', undefined],
    ['b > 1 || !(b > 1)', undefined],
    ['!(f || b > 1)', false],
    ['a / 0 > 1e308', true],
  ])('%s is %s', (text, expected) => {
    const { when, problems } = readCondition(text, signals);
    expect(problems).toEqual([]);
    expect(when && evaluateCondition(when.condition, reader, new Map([['x', 4]]))).toBe(expected);
  });

  it('takes only 1 and 0 for flags', () => {
    const { when } = readCondition('f || !f', signals);
    const truth = (value: number) =>
      when && evaluateCondition(when.condition, { ...reader, number: () => value }, new Map());
    expect([1, 0, 0.5, 2, Number.NaN].map(truth)).toEqual([true, true, undefined, undefined, undefined]);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CONDITION_LIMITS, readCondition } from '../../../../src/core/policy/condition.ts';
import type { SignalType } from '../../../../src/core/policy/document.ts';
import { conditions, SIGNALS } from './arbitraries.ts';

const signals = new Map<string, SignalType>(Object.entries(SIGNALS));

describe('readCondition', () => {
  it.each([
    [
      'a > 1',
      {
        kind: 'compare',
        op: '>',
        left: { kind: 'signal', name: 'a', integer: false },
        right: { kind: 'number', value: 1 },
      },
    ],
    ['n == 1', { kind: 'compare', op: '==', left: { kind: 'signal', name: 'n', integer: true } }],
    ['a > n', { kind: 'compare', right: { kind: 'signal', name: 'n' } }],
    ['a > -2.5e-3', { kind: 'compare', right: { kind: 'number', value: -0.0025 } }],
    [
      'a + 2 * b > 0',
      { kind: 'compare', left: { kind: 'arithmetic', op: '+', right: { kind: 'arithmetic', op: '*' } } },
    ],
    ['-a < 0x10', { kind: 'compare', left: { kind: 'negate' }, right: { kind: 'number', value: 16 } }],
    ['n % 2 == 0', { kind: 'compare', left: { kind: 'arithmetic', op: '%' } }],
    ['f', { kind: 'flag', name: 'f' }],
    ['!f', { kind: 'not', operand: { kind: 'flag' } }],
    ['f == true', { kind: 'flag' }],
    ['false == f', { kind: 'not', operand: { kind: 'flag' } }],
    ['f != true', { kind: 'not', operand: { kind: 'flag' } }],
    ['f == g', { kind: 'same-flag', left: 'f', right: 'g' }],
    ['true == false', { kind: 'boolean', value: false }],
    ['f && g && a > 1', { kind: 'and', operands: [{ kind: 'flag' }, { kind: 'flag' }, { kind: 'compare' }] }],
    ['f || g && a > 1', { kind: 'or', operands: [{ kind: 'flag' }, { kind: 'and' }] }],
    ['n in [1, -2, 3.5]', { kind: 'member', values: [1, -2, 3.5] }],
    ['s == "eu"', { kind: 'text-member', name: 's', values: ['eu'] }],
    ["'eu' != s", { kind: 'not', operand: { kind: 'text-member', name: 's', values: ['eu'] } }],
    ['context.s in ["eu", "us"]', { kind: 'text-member', name: 's', values: ['eu', 'us'] }],
    ['s == t', { kind: 'same-text', left: 's', right: 't' }],
    ['"a" == "a"', { kind: 'boolean', value: true }],
    ['a > 1 // as measured', { kind: 'compare' }],
    ['s == "tune(1)"', { kind: 'text-member', values: ['tune(1)'] }],
    ['a > tune("x", 1, min: 0, max: 2, step: 1)', { kind: 'compare', right: { kind: 'tune', name: 'x' } }],
  ])('reads %s', (text, expected) => {
    const { when, problems } = readCondition(text, signals);
    expect(problems).toEqual([]);
    expect(when?.condition).toMatchObject(expected);
  });

  it('notes what a condition reads, once each', () => {
    expect(readCondition('b > 1 && (a < b || s == t) && !f', signals).when?.reads).toEqual([
      'b',
      'a',
      's',
      't',
      'f',
    ]);
  });

  it.each([
    ['', 0, 'the condition cannot be read'],
    ['a >', 3, 'the condition cannot be read'],
    ['a > 1 )', 6, 'the condition cannot be read'],
    ['a', 0, 'a comparison or a flag is needed here, not a number'],
    ['s', 0, 'a comparison or a flag is needed here, not a text'],
    ['a > 1 && n', 9, 'a comparison or a flag is needed here, not a number'],
    ['!a', 1, 'a comparison or a flag is needed here, not a number'],
    ['-f > 1', 1, 'a number is needed here, not a condition'],
    ['a + s > 1', 4, 'a number is needed here, not a text'],
    ['a == s', 0, 'a number is compared with a text'],
    ['f == 1', 0, 'a bool is compared with a number'],
    ['f < g', 0, 'bools have no order'],
    ['s < t', 0, 'texts have no order'],
    ['f == (a > 1)', 0, 'only flags and true or false can be compared like this'],
    ['a % 2 == 0', 0, '% takes whole numbers'],
    ['n / 2 % 2 == 0', 0, '% takes whole numbers'],
    ['a in 3', 5, '`in` takes a list on its right'],
    ['a in [1, b]', 9, 'a list holds literals of the type on the left of `in`'],
    ['s in ["eu", 1]', 12, 'a list holds literals of the type on the left of `in`'],
    ['f in [true]', 6, 'a list holds literals of the type on the left of `in`'],
    ['"eu" in ["eu"]', 0, 'both sides of `in` are fixed'],
    ['[1] == 1', 0, 'not part of the policy language'],
    ['x > 1', 0, 'a signal that is not declared under `signals`'],
    ['context.x == "1"', 0, 'a signal that is not declared under `signals`'],
    ['context.a > 1', 0, 'the context holds texts only'],
    ['hints.a > 1', 0, 'not part of the policy language'],
    ['f ? a > 1 : b > 1', 0, 'not part of the policy language'],
    ['size(s) > 1', 0, 'not part of the policy language'],
    ['s.matches("(a+)+$")', 0, 'not part of the policy language'],
    ['s.contains("a")', 0, 'not part of the policy language'],
    ['[1].all(x, x > 1)', 0, 'not part of the policy language'],
    ['has(a.b)', 0, 'not part of the policy language'],
    ['{"a": 1}.a == 1', 0, 'not part of the policy language'],
    ['a > null', 4, 'this kind of literal is not supported'],
    ['a > 1u', 4, 'this kind of literal is not supported'],
    ['s == b"eu"', 5, 'this kind of literal is not supported'],
    ['s == r"eu"', 5, 'this kind of text is not supported'],
    ['s == """eu"""', 5, 'this kind of text is not supported'],
    ['n == 9007199254740993', 5, 'a whole number is too large'],
    ['a > 1e999', 4, 'the condition cannot be read'],
    ['__proto__ > 1', 0, 'the condition cannot be read'],
    ['constructor > 1', 0, 'a signal that is not declared under `signals`'],
    ['toString == "x"', 0, 'a signal that is not declared under `signals`'],
  ])('refuses %s', (text, offset, what) => {
    const { when, problems } = readCondition(text, signals);
    expect(when).toBeUndefined();
    expect(problems.map((problem) => [problem.offset, problem.what])).toEqual([
      [offset, expect.stringContaining(what)],
    ]);
  });

  it.each([
    ['characters', 'a > 1 && '.repeat(300), 'the condition is too long'],
    ['items in a list', `a in [${'1, '.repeat(130)}1]`, 'Exceeded maxListElements (128)'],
    ['parentheses', `${'('.repeat(40)}f${')'.repeat(40)}`, 'Exceeded maxDepth (32)'],
    ['nodes', `${'f||'.repeat(300)}f`, 'Exceeded maxAstNodes (256)'],
  ])('refuses too many %s', (_, text, what) => {
    expect(readCondition(text, signals).problems).toMatchObject([{ what: expect.stringContaining(what) }]);
  });

  it('reports every type error of a condition', () => {
    const { problems } = readCondition('x > 1 && f > 2 && s in [1]', signals);
    expect(problems.map(({ offset }) => offset)).toEqual([0, 9, 24]);
  });

  it.each([
    [
      'tune("x", 1, min: 0.5, max: 2, step: 0.1)',
      { name: 'x', default: 1, min: 0.5, max: 2, step: { by: 'amount', size: 0.1 } },
    ],
    [
      "tune ( 'hbm-floor' ,65536,step:10%, max: 262144 , min: 32768 )",
      { name: 'hbm-floor', default: 65536, min: 32768, max: 262144, step: { by: 'percent', size: 10 } },
    ],
    [
      'tune("x", -1, min: -2e0, max: 0, step: 1)',
      { name: 'x', default: -1, min: -2, max: 0, step: { by: 'amount', size: 1 } },
    ],
  ])('reads %s', (text, expected) => {
    const { tunables, problems } = readCondition(`a > ${text} && f`, signals);
    expect(problems).toEqual([]);
    expect(tunables).toEqual([expected]);
  });

  it.each([
    ['tune()', 'its name is a quoted text that begins with a letter, and not constructor or prototype'],
    [
      'tune(x, 1, min: 0, max: 2, step: 1)',
      'its name is a quoted text that begins with a letter, and not constructor or prototype',
    ],
    [
      'tune("", 1, min: 0, max: 2, step: 1)',
      'its name is a quoted text that begins with a letter, and not constructor or prototype',
    ],
    [
      'tune("__proto__", 1, min: 0, max: 2, step: 1)',
      'its name is a quoted text that begins with a letter, and not constructor or prototype',
    ],
    ['tune("x" 1, min: 0, max: 2, step: 1)', 'a comma is missing'],
    ['tune("x", a, min: 0, max: 2, step: 1)', 'its default is a number'],
    ['tune("x", 1e999, min: 0, max: 2, step: 1)', 'its default is a number'],
    ['tune("x", 1)', 'min, max and step are required'],
    ['tune("x", 1, 0, 2, 1)', 'min, max and step are named, and numbers'],
    ['tune("x", 1, min: 0, min: 0, max: 2, step: 1)', 'min is given twice'],
    ['tune("x", 1, min: 0, max: 2, step: 1', 'a parenthesis is missing'],
    ['tune("x", 1, min: 0%, max: 2, step: 1)', 'only the step may be a percentage'],
    ['tune("x", 3, min: 0, max: 2, step: 1)', 'its default lies outside min … max'],
    ['tune("x", 1, min: 2, max: 0, step: 1)', 'its default lies outside min … max'],
    ['tune("x", 1, min: 0, max: 2, step: 0)', 'its step is not above zero'],
    [
      'tune("x", 1, min: 0, max: 2, step: 10%)',
      'a step in percent is at most 100 %, and needs a min above zero',
    ],
    [
      'tune("x", 1, min: 1, max: 2, step: 101%)',
      'a step in percent is at most 100 %, and needs a min above zero',
    ],
  ])('refuses %s', (text, why) => {
    const { when, problems } = readCondition(`a > ${text}`, signals);
    expect(when).toBeUndefined();
    expect(problems).toMatchObject([{ what: `this is not a tunable constant: ${why}` }]);
  });

  it('takes tune for a constant only where it stands alone', () => {
    for (const text of [
      'a > x.tune("x", 1, min: 0, max: 2, step: 1)',
      'a > tune // (\n("x", 1)',
      'a > attune(1)',
    ]) {
      expect(readCondition(text, signals).when).toBeUndefined();
    }
  });

  it('never throws, and keeps within its limits', () => {
    const soup = fc
      .array(
        fc.oneof(
          conditions,
          fc.constantFrom(
            ...'()[]{}!-+*/%<>=&|?:.,"\'\\ \n',
            'tune(',
            '"x"',
            'in',
            'a',
            '0x',
            '1e',
            'r"',
            '//',
          ),
        ),
        { maxLength: 40 },
      )
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(fc.oneof(soup, fc.string({ unit: 'binary' })), (text) => {
        const { when, problems } = readCondition(text, signals);
        expect(when === undefined).toBe(problems.length > 0);
        for (const { offset } of problems) expect(offset).toBeLessThanOrEqual(Math.max(text.length, 1));
        if (when !== undefined) expect(text.length).toBeLessThanOrEqual(CONDITION_LIMITS.characters);
      }),
      { numRuns: 1_000 },
    );
    expect(readCondition('-'.repeat(2_000), signals).when).toBeUndefined();
  });
});

import { describe, expect, it } from 'vitest';
import { DocumentError, describeProblem, type PolicyProblem } from '../../../../src/core/policy/problem.ts';

const problem: PolicyProblem = { severity: 'error', path: '', position: undefined, what: 'it is wrong' };

describe('describeProblem', () => {
  it.each<[Partial<PolicyProblem>, string]>([
    [{}, 'it is wrong'],
    [{ path: 'tree[0]' }, 'tree[0]: it is wrong'],
    [{ position: { line: 2, column: 3 } }, 'line 2, column 3: it is wrong'],
    [
      { path: 'a', position: { line: 2, column: 3 }, value: 'x', allowed: 'y', advice: 'Do z.' },
      'a, line 2, column 3: it is wrong (got "x"; allowed: y). Do z.',
    ],
  ])('%o', (fields, text) => {
    expect(describeProblem({ ...problem, ...fields })).toBe(text);
  });
});

describe('DocumentError', () => {
  it('tells the first error, and how many more there are', () => {
    expect(new DocumentError('INVALID_POLICY', [problem]).message).toBe('it is wrong');
    const warning: PolicyProblem = { ...problem, severity: 'warning', what: 'it is odd' };
    const error = new DocumentError('INVALID_CONFIG', [warning, problem]);
    expect(error).toMatchObject({
      message: 'it is wrong (and 1 more)',
      code: 'INVALID_CONFIG',
      retryable: false,
    });
    expect(error.problems).toEqual([warning, problem]);
  });
});

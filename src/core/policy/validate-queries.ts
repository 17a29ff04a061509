import type { PolicyDocument } from './document.ts';
import type { PolicyProblem } from './problem.ts';
import { promqlProblem } from './promql.ts';

/**
 * What is doubtful in the queries of a policy's guardrails. Warnings only: Prometheus has the last word, and knows what this version does not. At most
 * one for each, and one that says what was not looked at.
 */
export function validateQueries({
  rollout,
  positions,
}: Pick<PolicyDocument, 'rollout' | 'positions'>): PolicyProblem[] {
  const { queries } = rollout.guardrails;
  if (queries.length === 0) return [];
  const warning = (
    path: string,
    what: string,
    detail: Pick<PolicyProblem, 'value' | 'advice'>,
  ): PolicyProblem => ({
    severity: 'warning',
    path,
    position: positions.get(path),
    what,
    ...detail,
  });
  const found = queries.flatMap(({ name, query }, index) => {
    const problem = promqlProblem(query);
    if (problem === undefined) return [];
    const { at, what } = problem;
    const path = `rollout.guardrails.queries[${index}].query`;
    const where = `Prometheus would refuse the query ${name}: ${what}, at character ${at + 1}`;
    return [warning(path, where, { value: query.slice(at), advice: WHAT_FOLLOWS })];
  });
  const names = queries.map(({ name }) => name).join(', ');
  return [...found, warning('rollout.guardrails.queries', NOT_ASKED, { value: names, advice: ASK })];
}

const WHAT_FOLLOWS = 'A query without an answer holds the rollout';
const NOT_ASKED = 'the syntax of these queries was looked at, and nothing else: no Prometheus was asked';
const ASK =
  'Ask your Prometheus each of them before you publish. The controller asks that of its controller.prometheusUrl, and refuses the policy where it has none';

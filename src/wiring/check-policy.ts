import type { Settings } from '../config/settings.ts';
import { leafBranches, type PolicyDocument } from '../core/policy/document.ts';
import type { Fleet } from '../core/policy/fleet.ts';
import { readPolicyDocument } from '../core/policy/parse.ts';
import { DocumentError, type PolicyProblem } from '../core/policy/problem.ts';
import { validateParts, validatePolicy } from '../core/policy/validate.ts';
import { validateQueries } from '../core/policy/validate-queries.ts';
import { REGION } from '../core/request/check.ts';
import { SIGNALS } from '../core/signals/extract.ts';
import { digestOf, readFleet } from './policy-files.ts';

export interface CheckedPolicy {
  /** Of the fleet that it was checked against. */
  fleet: string;
  /** Errors refuse the policy, warnings do not. */
  problems: readonly PolicyProblem[];
  /** undefined where the document does not parse. */
  policy: { name: string; version: number; digest: string; leaves: number; tests: number } | undefined;
}

/**
 * Everything that is wrong or doubtful in a policy, against the fleet of the settings and the signals of the extractor. Where it does not parse, the
 * rest of it is still checked as far as it can be read. Throws for no policy.
 */
export function checkPolicyFile(bytes: Uint8Array, settings: Settings): CheckedPolicy {
  const fleet = readFleet(settings);
  const texts = new Set([...settings.limits.contextKeys, REGION]);
  const { document, problems } = readDocument(bytes);
  if (document === undefined) return { fleet: fleet.name, problems, policy: undefined };
  if (problems.length > 0)
    return {
      fleet: fleet.name,
      problems: inOrder([...problems, ...problemsBeside(problems, document, fleet, texts)]),
      policy: undefined,
    };
  const { name, version, tree, tests } = document;
  return {
    fleet: fleet.name,
    problems: [...validatePolicy(document, fleet, SIGNALS, texts), ...validateQueries(document)],
    policy: {
      name,
      version,
      digest: digestOf(bytes),
      leaves: leafBranches(tree).length,
      tests: tests.length,
    },
  };
}

/** Of a document that does not parse: where its decisions can be read whole, everything; else its targets and signals. */
function problemsBeside(
  problems: readonly PolicyProblem[],
  document: PolicyDocument,
  fleet: Fleet,
  texts: ReadonlySet<string>,
): PolicyProblem[] {
  const isAt = (place: string): boolean =>
    problems.some(
      ({ path }) => path === place || path.startsWith(`${place}.`) || path.startsWith(`${place}[`),
    );
  const queries = isAt('rollout') ? [] : validateQueries(document);
  if (document.tree.length === 0 || ['tree', 'signals', 'tuned'].some(isAt))
    return [...validateParts(document, fleet, SIGNALS, texts), ...queries];
  const tests = document.tests.filter(({ path }) => !isAt(path));
  const found = validatePolicy({ ...document, tests }, fleet, SIGNALS, texts);
  // A test that cannot be read may be the one of a leaf that seems to have none.
  return [...(isAt('tests') ? found.filter(({ path }) => path !== 'tests') : found), ...queries];
}

function readDocument(bytes: Uint8Array): ReturnType<typeof readPolicyDocument> {
  try {
    return readPolicyDocument(bytes);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    return { document: undefined, problems: error.problems };
  }
}

/** As they stand in the document. */
function inOrder(problems: readonly PolicyProblem[]): PolicyProblem[] {
  const lineOf = ({ position }: PolicyProblem): number => position?.line ?? 0;
  return [...problems].sort((a, b) => lineOf(a) - lineOf(b));
}

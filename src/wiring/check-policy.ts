import type { Settings } from '../config/settings.ts';
import { leafBranches } from '../core/policy/document.ts';
import { parsePolicy } from '../core/policy/parse.ts';
import { DocumentError, type PolicyProblem } from '../core/policy/problem.ts';
import { validatePolicy } from '../core/policy/validate.ts';
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

/** Everything that is wrong or doubtful in a policy, against the fleet of the settings and the signals of the extractor. Throws for no policy. */
export function checkPolicyFile(bytes: Uint8Array, settings: Settings): CheckedPolicy {
  const fleet = readFleet(settings);
  try {
    const document = parsePolicy(bytes);
    const { name, version, tree, tests } = document;
    return {
      fleet: fleet.name,
      problems: validatePolicy(document, fleet, SIGNALS),
      policy: {
        name,
        version,
        digest: digestOf(bytes),
        leaves: leafBranches(tree).length,
        tests: tests.length,
      },
    };
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    return { fleet: fleet.name, problems: error.problems, policy: undefined };
  }
}

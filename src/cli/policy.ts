import { Command } from 'commander';
import type { CliContext } from './context.ts';
import { type ValidateFlags, validatePolicyFile } from './policy-check.ts';
import { diffCommand } from './policy-diff.ts';
import { type ExplainFlags, explainPolicy } from './policy-explain.ts';
import { historyCommand } from './policy-history.ts';
import { keygenCommand } from './policy-keygen.ts';
import { publishCommand } from './policy-publish.ts';
import { signCommandCommand } from './policy-sign.ts';
import { rolloutCommand } from './rollout.ts';

/** `millrace policy …`: a policy's document with no pipeline at hand; then its signature, its way to live, and what became of it. */
export function policyCommand(context: CliContext): Command {
  const policy = new Command('policy').description(
    'Routing policies: check one, ask it how it decides, compare two; sign, publish and roll out',
  );
  policy
    .command('validate')
    .description(
      'Check a policy against a fleet: syntax, types, targets, branches that nothing reaches, golden tests',
    )
    .argument('<file>', 'YAML or JSON; docs/policy-language.md says what may be in it')
    .option('--fleet <file>', 'fleet to check its targets against (default: the one of the settings)')
    .option('--json', 'print one JSON object instead of text', false)
    .addHelpText(
      'after',
      `
Errors refuse a policy, exit code 2; warnings do not. Golden tests run whatever else is wrong with targets or with the rollout. The queries of
guardrails are not asked: their syntax is looked at, and the warnings say what was not.

Examples:
  millrace policy validate examples/policies/starter.yaml
  millrace policy validate my-policy.yaml --fleet my-fleet.yaml --json`,
    )
    .action((file: string, flags: ValidateFlags) => validatePolicyFile(context, file, flags));
  policy
    .command('explain')
    .description('Show step by step which leaf a request ends in, and why')
    .argument('<file>', 'policy, YAML or JSON')
    .option('--signals <json>', 'signals by name; what is not named is missing')
    .option('--context <json>', 'texts by name, for conditions on strings')
    .option('--request <file>', 'read signals and context off this request file instead')
    .option('--fleet <file>', 'fleet of its targets (default: the one of the settings)')
    .option('--json', 'print one JSON object instead of text', false)
    .addHelpText(
      'after',
      `
Examples:
  millrace policy explain examples/policies/starter.yaml --signals '{"sparsityRatio": 0.8, "predictedCostMs": 0.2}'
  millrace policy explain examples/policies/starter.yaml --request examples/requests/ranker.json`,
    )
    .action((file: string, flags: ExplainFlags) => explainPolicy(context, file, flags));
  return policy
    .addCommand(diffCommand(context))
    .addCommand(keygenCommand(context))
    .addCommand(signCommandCommand(context))
    .addCommand(publishCommand(context))
    .addCommand(rolloutCommand(context))
    .addCommand(historyCommand(context));
}

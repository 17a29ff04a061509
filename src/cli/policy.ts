import { Command } from 'commander';
import { loadSettings } from '../config/load-settings.ts';
import { readUserFile } from '../config/user-file.ts';
import { describeProblem } from '../core/policy/problem.ts';
import { checkPolicyFile } from '../wiring/check-policy.ts';
import type { CliContext } from './context.ts';
import { type ExplainFlags, explainPolicy } from './policy-explain.ts';

interface ValidateFlags {
  fleet?: string;
  json: boolean;
}

/** `millrace policy validate|explain`: a policy's document, with no pipeline at hand. */
export function policyCommand(context: CliContext): Command {
  const policy = new Command('policy').description('Routing policies: check one, and ask it how it decides');
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
Errors refuse a policy, exit code 2; warnings do not.

Examples:
  millrace policy validate examples/policies/starter.yaml
  millrace policy validate my-policy.yaml --fleet my-fleet.yaml --json`,
    )
    .action((file: string, flags: ValidateFlags) => validate(context, file, flags));
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
  return policy;
}

function validate(context: CliContext, file: string, flags: ValidateFlags): void {
  const { settings } = loadSettings(context.environment, { fleet: flags.fleet });
  const checked = checkPolicyFile(readUserFile(file), settings);
  const { problems, policy } = checked;
  const isValid = !problems.some(({ severity }) => severity === 'error');
  if (!isValid) context.exitCode = 2;
  if (flags.json) {
    context.stdout.write(
      `${JSON.stringify({ file, valid: isValid, ...policy, fleet: checked.fleet, problems })}\n`,
    );
    return;
  }
  for (const problem of problems) context.stdout.write(`${problem.severity}: ${describeProblem(problem)}\n`);
  context.stdout.write(`${verdict(file, checked, isValid)}\n`);
}

function verdict(
  file: string,
  { policy, problems, fleet }: ReturnType<typeof checkPolicyFile>,
  isValid: boolean,
): string {
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const counts = `${counted(errors, 'error')}, ${counted(problems.length - errors, 'warning')}`;
  if (!isValid || policy === undefined) return `${file}: not valid: ${counts}`;
  const { name, version, digest, leaves, tests } = policy;
  return `${file}: valid: ${name}@${version}, ${leaves} leaves, ${counted(tests, 'golden test')} passed, on the fleet ${fleet}: ${counts}\n${digest}`;
}

function counted(many: number, what: string): string {
  return `${many} ${what}${many === 1 ? '' : 's'}`;
}

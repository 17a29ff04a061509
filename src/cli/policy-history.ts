import { Command } from 'commander';
import type { CliContext } from './context.ts';
import { showHistory } from './decision-history.ts';
import { count } from './flags.ts';
import { scopeOfPolicy } from './policy-name.ts';

interface HistoryFlags {
  max: number;
  looks: boolean;
  json: boolean;
}

/** `millrace policy history [name]`: what was decided about policies. */
export function historyCommand(context: CliContext): Command {
  return new Command('history')
    .description(
      'Show what was decided about a policy, or all: published, rolled out, rolled back, refused; by whom, and when',
    )
    .argument('[name]', 'name of the policy (default: all policies)')
    .option('--max <n>', 'at most so many lines, the newest', count, 100)
    .option('--looks', "the controller's looks at a rollout as well", false)
    .option('--json', 'print one JSON object per line, with the evidence', false)
    .addHelpText(
      'after',
      `
Read off the log of control events, which is kept for ever. An epoch is a state of what routers do, and only rises: going back to an
older policy has a new one. Neighbours that say the same are folded (held and resumed 14 times), and lines are cut to the terminal's width; --json has
every event whole. Needs a running installation (MILLRACE_KAFKA_BROKERS, MILLRACE_REGISTRY_URL).

Examples:
  millrace policy history starter
  millrace policy history --max 20 --json | jq -r '[.at, .type, .actor] | @tsv'`,
    )
    .action((name: string | undefined, flags: HistoryFlags) =>
      showHistory(context, name === undefined ? 'policy/*' : scopeOfPolicy(name), {
        ...flags,
        what: 'policy',
        isOne: name !== undefined,
      }),
    );
}

import { Command } from 'commander';
import type { ControlEvent } from '../contracts/records.ts';
import { MillraceError } from '../core/errors.ts';
import type { CliContext } from './context.ts';
import { count } from './flags.ts';
import { scopeOfPolicy } from './policy-name.ts';
import { EVENT_HEADERS, eventCells, shownEvent } from './shown-event.ts';
import { tableLines } from './table.ts';
import { waitingFor } from './waiting.ts';
import { withClient } from './with-client.ts';

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
    .option('--max <n>', 'at most so many, the newest', count, 100)
    .option('--looks', "the controller's looks at a rollout as well", false)
    .option('--json', 'print one JSON object per line, with the evidence', false)
    .addHelpText(
      'after',
      `
Read off the log of control events, which is kept for 400 days. An epoch is a state of what routers do, and only rises: going back to an
older policy has a new one. Needs a running installation (MILLRACE_KAFKA_BROKERS, MILLRACE_REGISTRY_URL).

Examples:
  millrace policy history starter
  millrace policy history --max 20 --json | jq -r '[.at, .type, .actor] | @tsv'`,
    )
    .action((name: string | undefined, flags: HistoryFlags) => history(context, name, flags));
}

async function history(context: CliContext, name: string | undefined, flags: HistoryFlags): Promise<void> {
  const scope = name === undefined ? 'policy/*' : scopeOfPolicy(name);
  await withClient(context, async (client) => {
    const events = await waitingFor(
      context,
      'reading the control events',
      newest(client.control.events({ scope, fromStart: true, follow: false }), flags),
    );
    if (flags.json) {
      for (const event of events) context.stdout.write(`${JSON.stringify(shownEvent(event))}\n`);
    } else if (events.length > 0) {
      context.stdout.write(`${tableLines(EVENT_HEADERS, events.map(eventCells)).join('\n')}\n`);
    } else if (name === undefined) {
      context.stdout.write('nothing was decided about any policy yet\n');
    }
    if (events.length === 0 && name !== undefined) throw unknownPolicy(name);
  });
}

async function newest(events: AsyncIterable<ControlEvent>, flags: HistoryFlags): Promise<ControlEvent[]> {
  const kept: ControlEvent[] = [];
  for await (const event of events) {
    if (event.type === 'rollout-looked' && !flags.looks) continue;
    kept.push(event);
    if (kept.length > flags.max) kept.shift();
  }
  return kept;
}

export function unknownPolicy(name: string): MillraceError {
  return new MillraceError('INVALID_CONFIG', 'nothing was ever decided about a policy of this name', {
    value: name,
    advice: '`millrace policy history` shows all policies; MILLRACE_PREFIX says which installation',
  });
}

import { Command } from 'commander';
import type { ControlEvent } from '../contracts/records.ts';
import type { CliContext } from './context.ts';
import { count } from './flags.ts';
import { eventCells, shownEvent } from './shown-event.ts';
import { waitingFor } from './waiting.ts';
import { withClient } from './with-client.ts';

interface EventsFlags {
  scope?: string;
  command?: string;
  fromStart: boolean;
  follow: boolean;
  max?: number;
  json: boolean;
}

/** `millrace control events`: what the controller decides, as it does. */
export function controlEventsCommand(context: CliContext): Command {
  return new Command('events')
    .description("Print the controller's decisions as they come")
    .option('--scope <scope>', 'only those of this scope, such as policy/starter or policy/*')
    .option('--command <id>', 'only those that this command brought about')
    .option('--from-start', 'begin with the first that is kept (400 days)', false)
    .option('--no-follow', 'end when everything that is there was printed; goes with --from-start')
    .option('--max <n>', 'end after so many', count)
    .option('--json', 'print one JSON object per line, with the evidence', false)
    .addHelpText(
      'after',
      `
Every decision is there, refusals too: at, event, scope, epoch, term, by whom, and why. Needs a running installation
(MILLRACE_KAFKA_BROKERS, MILLRACE_REGISTRY_URL). Ends with Ctrl-C, unless told otherwise.

Examples:
  millrace control events
  millrace control events --scope policy/starter --from-start --no-follow
  millrace control events --from-start --json | jq 'select(.accepted | not) | {at, actor, reason}'`,
    )
    .action((flags: EventsFlags) => events(context, flags));
}

async function events(context: CliContext, flags: EventsFlags): Promise<void> {
  await withClient(context, async (client) => {
    const stream = client.control.events({
      ...(flags.scope === undefined ? {} : { scope: flags.scope }),
      fromStart: flags.fromStart,
      follow: flags.follow,
      signal: context.interruption(),
    });
    await waitingFor(context, 'opening the control events', stream.ready);
    let printed = 0;
    for await (const event of stream) {
      if (flags.command !== undefined && event.commandId !== flags.command) continue;
      context.stdout.write(`${flags.json ? JSON.stringify(shownEvent(event)) : textLine(event)}\n`);
      printed += 1;
      if (printed === flags.max) break;
    }
  });
}

function textLine(event: ControlEvent): string {
  return eventCells(event)
    .map((cell, index) => (index === 3 ? `epoch ${cell}` : index === 4 ? `term ${cell}` : cell))
    .filter((cell) => cell !== '')
    .join('  ');
}

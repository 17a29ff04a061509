import { Command } from 'commander';
import type { ControlEventStream, LoggedEvent } from '../client/control-events.ts';
import type { CliContext } from './context.ts';
import { count } from './flags.ts';
import { type FoldedLooks, LookFold } from './folded-looks.ts';
import { cut, terminalWidth } from './screen.ts';
import { eventCells, eventDetail, shownEvent } from './shown-event.ts';
import { waitingFor } from './waiting.ts';
import { withClient } from './with-client.ts';

interface EventsFlags {
  scope?: string;
  command?: string;
  fromStart: boolean;
  follow: boolean;
  max?: number;
  all: boolean;
  json: boolean;
}

/** `millrace control events`: what the controller decides, as it does. */
export function controlEventsCommand(context: CliContext): Command {
  return new Command('events')
    .description("Print the controller's decisions as they come")
    .option('--scope <scope>', 'only those of this scope, such as policy/starter or policy/*')
    .option('--command <id>', 'only those that this command brought about')
    .option('--from-start', 'begin with the first; they are kept for ever', false)
    .option('--no-follow', 'end when everything that is there was printed; goes with --from-start')
    .option('--max <n>', 'end after so many', count)
    .option('--all', 'each look at a rollout in a line of its own: else looks in a row are one line', false)
    .option('--json', 'print one JSON object per line, with the evidence', false)
    .addHelpText(
      'after',
      `
Every decision is there, refusals too: at, event, scope, epoch, term, by whom, and why. Lines are cut to the terminal's width; --json has all.
What a controller that was replaced still got into the log counts for nothing: (void), or "void": true; without --from-start only where a later leader wrote since. Looks at a rollout and at
tuning, which decide nothing, are folded: one line for up to 30 in a row, unless --all is given. Needs a running installation
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
    const shown = linesOf(flags, terminalWidth(context.stdout));
    let printed = 0;
    const first = await waitingFor(context, waitedFor(flags), nextWanted(stream, flags));
    for (let event = first; event !== undefined; event = await nextWanted(stream, flags)) {
      for (const line of shown.of(event)) context.stdout.write(`${line}\n`);
      printed += 1;
      if (printed === flags.max) break;
    }
    for (const line of shown.rest()) context.stdout.write(`${line}\n`);
    await stream.return();
    if (printed === 0 && !flags.follow) context.stderr.write(`millrace: ${noneText(flags)}\n`);
  });
}

/** Events as they are printed: as JSON and with --all each by itself. */
function linesOf(
  { json, all }: Pick<EventsFlags, 'json' | 'all'>,
  columns: number | undefined,
): { of(event: LoggedEvent): string[]; rest(): string[] } {
  if (json) return { of: (event) => [JSON.stringify(shownEvent(event))], rest: () => [] };
  if (all) return { of: (event) => textLines(event, eventDetail(event), columns), rest: () => [] };
  const fold = new LookFold();
  const text = ({ last, times, firstMs }: FoldedLooks): string[] => {
    const since = times === 1 ? '' : `${times} looks since ${new Date(firstMs).toISOString()}, the last: `;
    return textLines(last, `${since}${eventDetail(last)}`, columns);
  };
  return { of: (event) => fold.add(event).flatMap(text), rest: () => fold.rest().flatMap(text) };
}

async function nextWanted(
  stream: ControlEventStream,
  { command }: EventsFlags,
): Promise<LoggedEvent | undefined> {
  for (;;) {
    const next = await stream.next();
    if (next.done === true) return undefined;
    if (command === undefined || next.value.commandId === command) return next.value;
  }
}

function waitedFor({ fromStart, follow }: EventsFlags): string {
  if (!follow) return 'reading the control events';
  return fromStart ? 'waiting for a decision' : 'waiting for decisions that come from now on';
}

function noneText({ fromStart, scope, command }: EventsFlags): string {
  const of = [
    ...(scope === undefined ? [] : [` in the scope ${scope}`]),
    ...(command === undefined ? [] : [` by the command ${command}`]),
  ];
  const advice = fromStart ? '' : '; --from-start prints those that came before';
  return `nothing was decided${of.join('')}${advice}`;
}

/** One line, or two that are cut where it does not fit a terminal. */
function textLines(event: LoggedEvent, what: string, columns: number | undefined): string[] {
  const cells = eventCells(event)
    .with(-1, what)
    .map((cell, index) => (index === 3 ? `epoch ${cell}` : index === 4 ? `term ${cell}` : cell));
  const line = joined(cells);
  if (columns === undefined || line.length <= columns) return [line];
  return [joined(cells.slice(0, -1)), `    ${cells.at(-1) ?? ''}`].map((part) => cut(part, columns));
}

function joined(cells: readonly string[]): string {
  return cells.filter((cell) => cell !== '').join('  ');
}

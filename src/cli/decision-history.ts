import type { LoggedEvent } from '../client/control-events.ts';
import { listNames, MillraceError } from '../core/errors.ts';
import type { CliContext } from './context.ts';
import { EventFold } from './folded-events.ts';
import { historyLines } from './history-lines.ts';
import { terminalWidth } from './screen.ts';
import { shownEvent } from './shown-event.ts';
import { waitingFor } from './waiting.ts';
import { withClient } from './with-client.ts';

export interface HistoryOptions {
  max: number;
  /** The looks at rollouts as well. */
  looks: boolean;
  json: boolean;
  what: 'policy' | 'model';
  /** One of them was named: nothing about it is an error. */
  isOne: boolean;
}

/** Prints what was decided in a scope (`policy/starter`, `model/*`), the newest: event by event as JSON, folded and fitted for people. */
export async function showHistory(
  context: CliContext,
  scope: string,
  options: HistoryOptions,
): Promise<void> {
  const { json, what, isOne } = options;
  await withClient(context, async (client) => {
    const events = client.control.events({ scope, fromStart: true, follow: false });
    const reading = json ? newestAsJson(events, options) : newestLines(context, events, options);
    const lines = await waitingFor(context, 'reading the control events', reading);
    if (lines.length > 0) context.stdout.write(`${lines.join('\n')}\n`);
    else if (isOne) throw unknownName(what, scope.slice(what.length + 1));
    else if (!json) context.stdout.write(`nothing was decided about any ${what} yet\n`);
  });
}

async function newestAsJson(events: AsyncIterable<LoggedEvent>, options: HistoryOptions): Promise<string[]> {
  const kept: LoggedEvent[] = [];
  for await (const event of events) {
    if (!isWanted(event, options)) continue;
    kept.push(event);
    if (kept.length > options.max) kept.shift();
  }
  return kept.map((event) => JSON.stringify(shownEvent(event)));
}

async function newestLines(
  { stdout }: CliContext,
  events: AsyncIterable<LoggedEvent>,
  options: HistoryOptions,
): Promise<string[]> {
  const fold = new EventFold(options.max);
  for await (const event of events) if (isWanted(event, options)) fold.add(event);
  return fold.lines.length === 0 ? [] : historyLines(fold.lines, terminalWidth(stdout), !options.isOne);
}

function isWanted({ type }: LoggedEvent, { looks }: HistoryOptions): boolean {
  return looks || type !== 'rollout-looked';
}

/** `known` are the names that something was decided about, where they are at hand. */
export function unknownName(
  what: HistoryOptions['what'],
  name: string,
  known?: readonly string[],
): MillraceError {
  const all = what === 'policy' ? 'policies' : 'models';
  return new MillraceError('INVALID_CONFIG', `nothing was ever decided about a ${what} of this name`, {
    value: name,
    ...(known === undefined ? {} : { allowed: listNames(known, 'none yet') }),
    advice: `\`millrace ${what} history\` shows all ${all}; MILLRACE_PREFIX says which installation`,
  });
}

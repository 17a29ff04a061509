import type { ControlEvent } from '../contracts/records.ts';
import { MillraceError } from '../core/errors.ts';
import type { CliContext } from './context.ts';
import { EVENT_HEADERS, eventCells, shownEvent } from './shown-event.ts';
import { tableLines } from './table.ts';
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

/** Prints what was decided in a scope (`policy/starter`, `model/*`), the newest. */
export async function showHistory(
  context: CliContext,
  scope: string,
  options: HistoryOptions,
): Promise<void> {
  const { json, what, isOne } = options;
  await withClient(context, async (client) => {
    const events = await waitingFor(
      context,
      'reading the control events',
      newest(client.control.events({ scope, fromStart: true, follow: false }), options),
    );
    if (json) {
      for (const event of events) context.stdout.write(`${JSON.stringify(shownEvent(event))}\n`);
    } else if (events.length > 0) {
      context.stdout.write(`${tableLines(EVENT_HEADERS, events.map(eventCells)).join('\n')}\n`);
    } else if (!isOne) {
      context.stdout.write(`nothing was decided about any ${what} yet\n`);
    }
    if (events.length === 0 && isOne) throw unknownName(what, scope.slice(what.length + 1));
  });
}

async function newest(
  events: AsyncIterable<ControlEvent>,
  { looks, max }: Pick<HistoryOptions, 'looks' | 'max'>,
): Promise<ControlEvent[]> {
  const kept: ControlEvent[] = [];
  for await (const event of events) {
    if (event.type === 'rollout-looked' && !looks) continue;
    kept.push(event);
    if (kept.length > max) kept.shift();
  }
  return kept;
}

export function unknownName(what: HistoryOptions['what'], name: string): MillraceError {
  const all = what === 'policy' ? 'policies' : 'models';
  return new MillraceError('INVALID_CONFIG', `nothing was ever decided about a ${what} of this name`, {
    value: name,
    advice: `\`millrace ${what} history\` shows all ${all}; MILLRACE_PREFIX says which installation`,
  });
}

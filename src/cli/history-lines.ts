import type { LoggedEvent } from '../client/control-events.ts';
import type { FoldedEvent } from './folded-events.ts';
import { cut } from './screen.ts';
import { EVENT_HEADERS, eventCells, eventDetail, eventType } from './shown-event.ts';
import { tableLines } from './table.ts';

/** What a line tells, and the event that its other columns are of. */
interface Told {
  event: LoggedEvent;
  type: string;
  what: string;
}

/** With less room beside the other columns, what was decided stands below them. */
const BESIDE_MIN = 40;
const INDENT = '    ';
const CUT = 'cut to fit: --json has every decision whole';

/**
 * A history as a table. On a terminal lines are cut to its width, and the columns are those that differ; elsewhere they are whole.
 *
 * @param columns width of the terminal; undefined where it is none
 * @param hasScopes whether the events are of several scopes
 */
export function historyLines(
  folded: readonly FoldedEvent[],
  columns: number | undefined,
  hasScopes: boolean,
): string[] {
  const told = folded.flatMap(tell);
  if (columns === undefined) {
    const rows = told.map(({ event, type, what }) => eventCells(event).with(1, type).with(-1, what));
    return tableLines(EVENT_HEADERS, rows);
  }
  const head = tableLines(
    ['at (UTC)', 'event', ...(hasScopes ? ['scope'] : []), 'epoch', 'by', ''],
    told.map(({ event, type }) => [
      new Date(event.occurredAt).toISOString().slice(0, 19).replace('T', ' '),
      type,
      ...(hasScopes ? [event.scope] : []),
      String(event.epoch),
      event.actor,
      '',
    ]),
  );
  const width = Math.max(...head.map((line) => line.length)) + 2;
  const whats = ['what', ...told.map(({ what }) => what)];
  const isBeside = columns - width >= BESIDE_MIN;
  const whole = head.flatMap((line, index) => {
    const what = whats[index] ?? '';
    if (isBeside) return [`${line.padEnd(width)}${what}`.trimEnd()];
    return what === '' || index === 0 ? [line] : [line, `${INDENT}${what}`];
  });
  const fitted = whole.map((line) => cut(line, columns));
  return fitted.some((line, index) => line !== whole[index]) ? [...fitted, cut(CUT, columns)] : fitted;
}

function tell(folded: FoldedEvent): Told[] {
  if (folded.kind === 'same') {
    const { event, times, firstMs } = folded;
    const detail = eventDetail(event);
    return [
      {
        event,
        type: eventType(event),
        what: times === 1 ? detail : `${times} times since ${iso(firstMs)}: ${detail}`,
      },
    ];
  }
  const { held, resumed, times, firstMs } = folded;
  if (times === 1)
    return [held, resumed].map((event) => ({ event, type: eventType(event), what: eventDetail(event) }));
  const what = `held and resumed ${times} times since ${iso(firstMs)}: ${eventDetail(held)}`;
  return [{ event: resumed, type: 'held, resumed', what }];
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

import type { Client } from '../client/client.ts';
import type { ControlEvent } from '../contracts/records.ts';
import type { ControllerEvent } from '../core/control/controller-event.ts';
import { inForce, withoutRepeats } from '../core/control/fence.ts';
import { readControllerEvent } from '../core/control/read-event.ts';

/** The log of control events as an auditor reads it. */
export interface ReadControlLog {
  /** Those that count: what a leader wrote after its time is left out. */
  events: readonly ControllerEvent[];
  void: number;
  /** Events that this version does not know. */
  unknown: number;
}

/** From the first event that is kept to the last that is there. */
export async function readControlLog(client: Client): Promise<ReadControlLog> {
  const written: ControlEvent[] = [];
  for await (const event of client.control.events({ fromStart: true, follow: false })) written.push(event);
  const entries = withoutRepeats(written).map(({ term, evidence }) => ({
    term,
    event: readControllerEvent(evidence),
  }));
  const counting = inForce(entries);
  const events = counting.flatMap(({ event }) => event ?? []);
  return { events, void: entries.length - counting.length, unknown: counting.length - events.length };
}

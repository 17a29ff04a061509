import type { Connection } from '../../../src/client/connection.ts';
import { type ControlCommand, type ControlEvent, makeControlEvent } from '../../../src/contracts/records.ts';
import type { MemoryInstallation } from './memory-installation.ts';

/** What plays the controller's part on a memory installation: it keeps the commands, and answers as it is told. */
export interface ControlRoom {
  commands: ControlCommand[];
  /** Appends an event. */
  tell(event: Partial<ControlEvent> & { type: string }): Promise<void>;
  /** Appends bytes in place of an event. */
  tellBytes(value: Buffer | null): Promise<void>;
  close(): Promise<void>;
}

type Answer = (command: ControlCommand) => (Partial<ControlEvent> & { type: string }) | undefined;

export const accepting: Answer = () => ({ type: 'policy-published', accepted: true, epoch: 5, term: 3 });

/** @param answer what each command brings about; nothing where it is undefined */
export async function controlRoom(
  installation: MemoryInstallation,
  answer: Answer = () => undefined,
): Promise<ControlRoom> {
  const connection: Connection = await installation.open();
  const { bus, codecs, topics } = connection;
  const commands: ControlCommand[] = [];
  const tellBytes = (value: Buffer | null): Promise<void> =>
    bus.produce({ topic: topics.fixed('control-events'), partition: 0, key: Buffer.from('scope'), value });
  const tell = (event: Partial<ControlEvent> & { type: string }): Promise<void> =>
    tellBytes(
      codecs.for('ControlEvent').encode(
        makeControlEvent({
          eventId: `e-${Math.random()}`,
          scope: 'policy/starter',
          actor: 'ana',
          accepted: true,
          occurredAt: Date.UTC(2026, 10, 30, 12),
          ...event,
        }),
      ),
    );
  await bus.read({ topics: [topics.fixed('control')], startAt: 'earliest' }, (records) => {
    for (const { value } of records) {
      const decoded = codecs.for('ControlCommand').decode(value);
      if (decoded.status !== 'ok') throw new Error(`a command cannot be read: ${decoded.status}`);
      const command = decoded.value;
      commands.push(command);
      const told = answer(command);
      if (told !== undefined) void tell({ scope: command.scope, commandId: command.commandId, ...told });
    }
  });
  return { commands, tell, tellBytes, close: () => connection.close() };
}

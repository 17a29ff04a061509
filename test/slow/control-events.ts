import type { Connection } from '../../src/client/connection.ts';
import { schemaOf } from '../../src/contracts/headers.ts';
import { type CommandType, type ControlEvent, makeControlCommand } from '../../src/contracts/records.ts';
import { eventually } from './real-pipeline.ts';

/** The control topics as an operator uses them, and an auditor reads them. */
export interface ControlRoom {
  /** All that was decided, in its order. */
  readonly events: readonly ControlEvent[];
  /** Sends a command, and waits until it is decided. @throws where it is refused */
  send(type: CommandType, body: string): Promise<void>;
}

export async function openControlRoom(client: Connection, scope: string): Promise<ControlRoom> {
  const { bus, codecs, topics, newId } = client;
  const events: ControlEvent[] = [];
  const codec = codecs.for('ControlEvent');
  let taking = Promise.resolve();
  await bus.read({ topics: [topics.fixed('control-events')], startAt: 'earliest' }, (records) => {
    taking = taking.then(async () => {
      for (const { value, headers } of records) {
        const first = codec.decode(value, schemaOf(headers));
        if (first.status === 'schema-unknown') await codecs.learn(first);
        const decoded = codec.decode(value, schemaOf(headers));
        if (decoded.status === 'ok') events.push(decoded.value);
      }
    });
  });
  return {
    events,
    async send(type, body) {
      const commandId = newId();
      const command = makeControlCommand({ commandId, scope, type, body: Buffer.from(body), actor: 'test' });
      const commands = codecs.for('ControlCommand');
      await bus.produce({
        topic: topics.fixed('control'),
        partition: 0,
        key: Buffer.from(scope),
        value: commands.encode(command),
        headers: commands.headers,
      });
      await eventually(() => events.some((event) => event.commandId === commandId), `${type} is decided`);
      const refused = events.find((event) => event.commandId === commandId && !event.accepted);
      if (refused !== undefined) throw new Error(`${type} was refused: ${refused.reason}`);
    },
  };
}

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Client, connect } from '../../../src/client/client.ts';
import { controlEvents } from '../../../src/client/control-events.ts';
import type { ControlEvent } from '../../../src/contracts/records.ts';
import { INITIAL_SIGNATURE_STATE } from '../../../src/core/control/signature-state.ts';
import { verifyCommand } from '../../../src/core/control/verify-command.ts';
import type { MessageBus } from '../../../src/ports/message-bus.ts';
import { person, ringOf, verify } from '../core/control/keys.fixture.ts';
import { accepting, type ControlRoom, controlRoom } from './control-room.ts';
import { type MemoryInstallation, memoryInstallation } from './memory-installation.ts';

let installation: MemoryInstallation;
let client: Client;
let room: ControlRoom;

beforeEach(async () => {
  installation = await memoryInstallation();
  client = await connect({ transport: { open: () => installation.open() } });
  room = await controlRoom(installation, accepting);
});

afterEach(async () => {
  await client.close();
  await room.close();
  await installation.close();
});

const HOLD = { scope: 'policy/starter', type: 'HOLD', body: '{"reason":"x"}', actor: 'ana' } as const;

async function typesOf(events: AsyncIterable<ControlEvent>): Promise<string[]> {
  const types: string[] = [];
  for await (const { type } of events) types.push(type);
  return types;
}

describe('publishing a command', () => {
  it('sends it unsigned where no signer is given', async () => {
    const commandId = await client.control.publish(HOLD);
    await vi.waitFor(() => expect(room.commands).toHaveLength(1));
    expect(room.commands[0]).toMatchObject({
      commandId,
      scope: 'policy/starter',
      type: 'HOLD',
      signature: null,
      coSignature: null,
    });
    expect(room.commands[0]?.body.toString()).toBe(HOLD.body);
  });

  it('signs it, for an hour, and co-signs it', async () => {
    const [ana, ben] = [person('ana'), person('ben')];
    const beforeMs = Date.now();
    await client.control.publish(HOLD, { signer: ana.signer, coSigner: ben.signer });
    await vi.waitFor(() => expect(room.commands).toHaveLength(1));
    const [command] = room.commands;
    if (command === undefined) throw new Error('no command');
    expect(verifyCommand(ringOf(ana, ben), INITIAL_SIGNATURE_STATE, command, Date.now(), verify)).toEqual({
      status: 'ok',
      signedBy: 'ana',
      coSignedBy: 'ben',
    });
    expect(command.signature?.nonce).not.toBe(command.coSignature?.nonce);
    const validMs = (command.signature?.notAfter ?? 0) - beforeMs;
    expect(validMs).toBeGreaterThanOrEqual(3_599_999);
    expect(validMs).toBeLessThan(3_660_000);
  });

  it('sends a signature that was made elsewhere as it is', async () => {
    const ana = person('ana');
    await client.control.publish(HOLD, { signer: ana.signer });
    await vi.waitFor(() => expect(room.commands).toHaveLength(1));
    const [made] = room.commands;
    if (made?.signature == null) throw new Error('not signed');
    await client.control.publish({ ...HOLD, commandId: made.commandId, signature: made.signature });
    await vi.waitFor(() => expect(room.commands).toHaveLength(2));
    expect(room.commands[1]).toEqual(made);
    const twice = client.control.publish({ ...HOLD, signature: made.signature }, { signer: ana.signer });
    await expect(twice).rejects.toThrow(/signed already .*either a signature made elsewhere, or a signer/);
  });

  it.each([0, -1, Number.NaN, 24 * 3_600_000 + 1])('refuses a validity of %d ms', async (validForMs) => {
    const publishing = client.control.publish(HOLD, { signer: person('ana').signer, validForMs });
    await expect(publishing).rejects.toThrow(/above 0, at most 24 h/);
  });
});

describe('the events of control', () => {
  it('from the start, to the end of what is there', async () => {
    await room.tell({ type: 'one' });
    await room.tell({ type: 'two', scope: 'policy/other' });
    await room.tell({ type: 'three', scope: 'controller' });
    const read = (scope?: string) =>
      typesOf(
        client.control.events({ fromStart: true, follow: false, ...(scope === undefined ? {} : { scope }) }),
      );
    expect(await read()).toEqual(['one', 'two', 'three']);
    expect(await read('policy/*')).toEqual(['one', 'two']);
    expect(await read('policy/other')).toEqual(['two']);
    expect(await read('policy/none')).toEqual([]);
  });

  it('of an empty topic end at once where they do not follow', async () => {
    expect(await typesOf(client.control.events({ fromStart: true, follow: false }))).toEqual([]);
  });

  it('miss no answer to what is sent once they are ready', async () => {
    await room.tell({ type: 'before' });
    const events = client.control.events({ scope: 'policy/starter' });
    await events.ready;
    const commandId = await client.control.publish(HOLD);
    for await (const event of events) {
      expect(event).toMatchObject({ type: 'policy-published', commandId, accepted: true, epoch: 5 });
      break;
    }
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });

  it('end with the signal, also while one is awaited', async () => {
    const stop = new AbortController();
    const reading = typesOf(client.control.events({ signal: stop.signal }));
    stop.abort();
    expect(await reading).toEqual([]);
    expect(await typesOf(client.control.events({ signal: stop.signal }))).toEqual([]);
  });

  it('end with the client', async () => {
    const events = client.control.events();
    await events.ready;
    const reading = typesOf(events);
    await client.close();
    expect(await reading).toEqual([]);
  });

  it('pass over what cannot be read', async () => {
    await room.tellBytes(Buffer.from('not avro'));
    await room.tellBytes(null);
    await room.tell({ type: 'after' });
    expect(await typesOf(client.control.events({ fromStart: true, follow: false }))).toEqual(['after']);
  });

  it('wait at the broker while nobody reads, and none is missed', async () => {
    const count = 2_000;
    for (let n = 0; n < count; n += 1) await room.tell({ type: `e${n}` });
    const own = await installation.open();
    let fetched = 0;
    const bus: MessageBus = {
      ...own.bus,
      admin: own.bus.admin,
      read: (options, onRecords) =>
        own.bus.read(options, (records) => {
          fetched += records.length;
          onRecords(records);
        }),
    };
    const events = controlEvents({ ...own, bus }, { fromStart: true, follow: false, bufferMax: 20 });
    expect((await events.next()).value).toMatchObject({ type: 'e0' });
    await new Promise((resolve) => setTimeout(resolve, 50));
    // the buffer, and one fetch, which is not cut to measure
    expect(fetched).toBeLessThanOrEqual(20 + 500);
    expect(await typesOf(events)).toEqual(Array.from({ length: count - 1 }, (_, n) => `e${n + 1}`));
    expect(fetched).toBe(count);
    await own.close();
  });

  it('that were not read do not come any more after an abort', async () => {
    for (const type of ['one', 'two', 'three']) await room.tell({ type });
    const stop = new AbortController();
    const events = client.control.events({ fromStart: true, signal: stop.signal });
    expect((await events.next()).value).toMatchObject({ type: 'one' });
    stop.abort();
    expect(await typesOf(events)).toEqual([]);
  });

  it('can be read by several at once', async () => {
    await room.tell({ type: 'one' });
    const all = [1, 2, 3].map(() => typesOf(client.control.events({ fromStart: true, follow: false })));
    expect(await Promise.all(all)).toEqual([['one'], ['one'], ['one']]);
  });
});

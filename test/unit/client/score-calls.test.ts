import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Connection } from '../../../src/client/connection.ts';
import { ScoreCalls, type SendRequest } from '../../../src/client/score-calls.ts';
import { type MemoryInstallation, memoryInstallation, scored } from './memory-installation.ts';

let installation: MemoryInstallation;
let connection: Connection;
let calls: ScoreCalls;
/** Partition that each sent request names for its result. */
let sent: number[];

beforeEach(async () => {
  installation = await memoryInstallation();
  connection = await installation.open();
  calls = new ScoreCalls(connection);
  sent = [];
});

afterEach(async () => {
  await calls.close();
  await connection.close();
  await installation.close();
});

/** Where it lies is not told. */
const send = async (partition: number): Promise<undefined> => {
  sent.push(partition);
  return undefined;
};

/** The request lies at that offset once `stored` resolves. */
const sendAt =
  (offset: number, stored?: Promise<void>): SendRequest =>
  async (partition) => {
    sent.push(partition);
    await stored;
    return scored('', offset).identity;
  };

async function whenSent(count = 1): Promise<number> {
  await vi.waitFor(() => expect(sent).toHaveLength(count));
  return sent[count - 1] ?? -1;
}

describe('calls that wait for their result', () => {
  it('resolve with the result of their own request', async () => {
    const one = calls.call('one', send);
    const two = calls.call('two', send);
    const partition = await whenSent(2);
    await installation.publish(scored('two', 2), partition);
    await installation.publish(scored('one', 1), partition);
    expect((await one).identity.offset).toBe(1);
    expect((await two).identity.offset).toBe(2);
  });

  it('all name one partition, and nothing is read before the first', async () => {
    const read = vi.spyOn(connection.bus, 'read');
    expect(read).not.toHaveBeenCalled();
    void calls.call('one', send).catch(() => undefined);
    void calls.call('two', send).catch(() => undefined);
    await whenSent(2);
    expect(new Set(sent).size).toBe(1);
    expect(read).toHaveBeenCalledTimes(1);
    expect(read.mock.calls[0]?.[0]).toMatchObject({ partitions: [sent[0]], startAt: 'latest' });
  });

  it('refuse an id that is waiting, and take it again once it was answered', async () => {
    const first = calls.call('same', send);
    await expect(calls.call('same', send)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await installation.publish(scored('same', 1), await whenSent());
    await first;
    const second = calls.call('same', send);
    await installation.publish(scored('same', 2), await whenSent(2));
    expect((await second).identity.offset).toBe(2);
  });

  it('are not answered by a second result of an earlier call of the same id', async () => {
    const first = calls.call('same', sendAt(1));
    const partition = await whenSent();
    await installation.publish(scored('same', 1), partition);
    await first;
    const second = calls.call('same', sendAt(7));
    await whenSent(2);
    await installation.publish(scored('same', 1, { attempt: 2 }), partition);
    await installation.publish(scored('same', 7), partition);
    expect((await second).identity.offset).toBe(7);
  });

  it('that repeat an aborted one under its id are answered by their own request, not by that of the aborted one', async () => {
    const stop = new AbortController();
    const first = calls.call('same', sendAt(1), stop.signal);
    const partition = await whenSent();
    stop.abort();
    await expect(first).rejects.toMatchObject({ code: 'CLOSED' });
    const second = calls.call('same', sendAt(7));
    await whenSent(2);
    await installation.publish(scored('same', 1), partition);
    await installation.publish(scored('same', 7), partition);
    expect((await second).identity.offset).toBe(7);
  });

  it('let results wait that come before the broker said where the request lies', async () => {
    const { promise: stored, resolve: store } = Promise.withResolvers<void>();
    const call = calls.call('same', sendAt(7, stored));
    const other = calls.call('other', sendAt(9));
    const partition = await whenSent(2);
    await installation.publish(scored('same', 1), partition);
    await installation.publish(scored('same', 7), partition);
    // What was published before it has been read by then.
    await installation.publish(scored('other', 9), partition);
    await other;
    store();
    expect((await call).identity.offset).toBe(7);
  });

  it('reject with CLOSED when their signal aborts, and leave no listener behind', async () => {
    const stop = new AbortController();
    const reason = new Error('enough');
    const call = calls.call('one', send, stop.signal);
    const partition = await whenSent();
    stop.abort(reason);
    await expect(call).rejects.toMatchObject({ code: 'CLOSED', cause: reason });
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
    await installation.publish(scored('one', 1), partition);
    const other = new AbortController();
    const next = calls.call('two', send, other.signal);
    await installation.publish(scored('two', 2), partition);
    await next;
    expect(getEventListeners(other.signal, 'abort')).toEqual([]);
  });

  it('send nothing when their signal has aborted already, or aborts while the reader opens', async () => {
    await expect(calls.call('one', send, AbortSignal.abort())).rejects.toMatchObject({ code: 'CLOSED' });
    const stop = new AbortController();
    const call = calls.call('two', send, stop.signal);
    stop.abort();
    await expect(call).rejects.toMatchObject({ code: 'CLOSED' });
    await installation.publish(scored('three', 3), await settledPartition());
    expect(sent).toHaveLength(1);
  });

  /** Sends a call that is not waited for: what came before it has been dealt with. */
  async function settledPartition(): Promise<number> {
    void calls.call('three', send).catch(() => undefined);
    return whenSent();
  }

  it('reject when the client closes, as does what is called afterwards', async () => {
    const call = calls.call('one', send);
    await whenSent();
    const rejected = expect(call).rejects.toMatchObject({ code: 'CLOSED' });
    await calls.close();
    await rejected;
    await expect(calls.call('two', send)).rejects.toMatchObject({ code: 'CLOSED' });
    expect(sent).toHaveLength(1);
  });

  it('reject with what the sending threw, and free their id', async () => {
    const broken = new Error('no broker');
    await expect(calls.call('one', () => Promise.reject(broken))).rejects.toBe(broken);
    const again = calls.call('one', send);
    await installation.publish(scored('one', 1), await whenSent());
    await again;
  });

  it('try the reader again after it could not be opened', async () => {
    vi.spyOn(connection.bus, 'read').mockRejectedValueOnce(new Error('no such topic'));
    await expect(calls.call('one', send)).rejects.toThrow('no such topic');
    const again = calls.call('one', send);
    await installation.publish(scored('one', 1), await whenSent());
    await again;
  });

  it('reject where their result cannot be read; it is logged and counted', async () => {
    const call = calls.call('one', send);
    await installation.publishBytes('one', Buffer.from('not avro'), await whenSent());
    await expect(call).rejects.toMatchObject({ code: 'NO_FRAME' });
    expect(installation.telemetry.total('millrace_client_unreadable_results_total')).toBe(1);
    expect(installation.telemetry.logs).toContainEqual(expect.objectContaining({ level: 'error' }));
  });
});

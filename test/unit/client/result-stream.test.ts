import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Connection } from '../../../src/client/connection.ts';
import type { UnreadableResult } from '../../../src/client/read-result.ts';
import { type ResultStream, type ResultsOptions, resultStream } from '../../../src/client/result-stream.ts';
import { MillraceError } from '../../../src/core/errors.ts';
import type { SchemaRegistry } from '../../../src/ports/schema-registry.ts';
import { type MemoryInstallation, memoryInstallation, RESULTS, scored } from './memory-installation.ts';

let installation: MemoryInstallation;
let connection: Connection;

beforeEach(async () => {
  installation = await memoryInstallation();
  connection = await installation.open();
});

afterEach(async () => {
  await connection.close();
  await installation.close();
});

async function opened(options: ResultsOptions = {}): Promise<ResultStream> {
  const stream = resultStream(connection, options);
  await stream.ready;
  return stream;
}

/** The next `count` request ids; leaves the loop with the last one acknowledged only where asked. */
async function take(
  stream: ResultStream,
  count: number,
  options: { acknowledgeLast?: boolean } = {},
): Promise<string[]> {
  const ids: string[] = [];
  for await (const received of stream) {
    ids.push(received.result.requestId);
    if (ids.length < count) continue;
    if (options.acknowledgeLast === true) received.acknowledge();
    break;
  }
  return ids;
}

describe('a stream of results', () => {
  it('loses nothing that comes between its opening and the first next()', async () => {
    const stream = await opened();
    await installation.publish(scored('a', 1), 0);
    await installation.publish(scored('b', 2), 0);
    expect(await take(stream, 2)).toEqual(['a', 'b']);
  });

  it('starts with what comes, or with the oldest that is kept', async () => {
    await installation.publish(scored('old', 1), 0);
    const latest = await opened();
    const earliest = await opened({ startAt: 'earliest' });
    await installation.publish(scored('new', 2), 0);
    expect(await take(latest, 1)).toEqual(['new']);
    expect(await take(earliest, 2)).toEqual(['old', 'new']);
  });

  it('gives what lies where another request lay, on an ingress topic that was made anew', async () => {
    const stream = await opened();
    await installation.publish(scored('before', 1), 0);
    await installation.publish(scored('after', 1), 0);
    await installation.publish(scored('after', 1, { attempt: 2 }), 0);
    await installation.publish(scored('end', 2), 0);
    expect(await take(stream, 3)).toEqual(['before', 'after', 'end']);
  });

  it('gives the first result per identity, the same id twice as two', async () => {
    const stream = await opened();
    await installation.publish(scored('a', 1), 0);
    await installation.publish(scored('a', 1, { attempt: 2 }), 0);
    await installation.publish(scored('a', 2), 0);
    await installation.publish(scored('end', 3), 0);
    const offsets: number[] = [];
    for await (const { result } of stream) {
      offsets.push(result.identity.offset);
      if (result.requestId === 'end') break;
    }
    expect(offsets).toEqual([1, 2, 3]);
  });

  it('says where each result lies', async () => {
    const stream = await opened();
    await installation.publish(scored('a', 1), 3);
    expect((await stream.next()).value).toMatchObject({ partition: 3, offset: 0 });
    await stream.return();
  });

  it('passes over what cannot be read, but tells, logs and counts it', async () => {
    const unreadable: UnreadableResult[] = [];
    const stream = await opened({ group: 'g', onUnreadable: (each) => unreadable.push(each) });
    await installation.publishBytes('broken', Buffer.from('not avro'), 0);
    await installation.publish(scored('a', 1), 0);
    expect(await take(stream, 1, { acknowledgeLast: true })).toEqual(['a']);
    expect(unreadable).toMatchObject([{ code: 'NO_FRAME', partition: 0, offset: 0, requestId: 'broken' }]);
    expect(installation.telemetry.total('millrace_client_unreadable_results_total')).toBe(1);
    expect(installation.telemetry.logs).toContainEqual(expect.objectContaining({ level: 'error' }));
    expect((await connection.bus.admin.committed('g', RESULTS)).get(0)).toBe(2);
  });

  it('ends with what onUnreadable throws, and gets the record again', async () => {
    const refusing = await opened({
      group: 'g',
      onUnreadable: () => {
        throw new Error('cannot have this');
      },
    });
    await installation.publishBytes('broken', Buffer.from('not avro'), 0);
    await expect(refusing.next()).rejects.toThrow('cannot have this');
    const again: UnreadableResult[] = [];
    const stream = await opened({ group: 'g', onUnreadable: (each) => again.push(each) });
    await installation.publish(scored('a', 1), 0);
    expect(await take(stream, 1)).toEqual(['a']);
    expect(again).toHaveLength(1);
  });

  it('waits for the schema while the registry is away, and loses nothing meanwhile', async () => {
    let refusals = 2;
    const registry: SchemaRegistry = {
      register: (...args) => installation.registry.register(...args),
      schemaById(id) {
        refusals -= 1;
        if (refusals >= 0) return Promise.reject(new MillraceError('REGISTRY_UNAVAILABLE', 'away'));
        return installation.registry.schemaById(id);
      },
    };
    const own = await installation.open(registry);
    const stream = resultStream(own);
    await stream.ready;
    await installation.publish(scored('a', 1), 0);
    await installation.publish(scored('b', 2), 0);
    expect(await take(stream, 2)).toEqual(['a', 'b']);
    expect(refusals).toBeLessThan(0);
    await own.close();
  });

  it('gives what was not consumed to the group again', async () => {
    const stream = await opened({ group: 'g' });
    for (let offset = 1; offset <= 4; offset += 1)
      await installation.publish(scored(`r${offset}`, offset), 0);
    expect(await take(stream, 2)).toEqual(['r1', 'r2']);
    expect(await take(await opened({ group: 'g' }), 2, { acknowledgeLast: true })).toEqual(['r2', 'r3']);
    expect(await take(await opened({ group: 'g' }), 1)).toEqual(['r4']);
  });

  it('keeps no more ready than bufferMax per partition', async () => {
    const subscribe = connection.bus.subscribe.bind(connection.bus);
    let delivered = 0;
    vi.spyOn(connection.bus, 'subscribe').mockImplementation((options, subscriber) =>
      subscribe(options, {
        ...subscriber,
        onRecords(records) {
          delivered += records.length;
          subscriber.onRecords(records);
        },
      }),
    );
    const stream = await opened({ bufferMax: 3 });
    for (let offset = 0; offset < 20; offset += 1)
      await installation.publish(scored(`r${offset}`, offset), 0);
    await vi.waitFor(() => expect(delivered).toBe(3));
    const first = await take(stream, 1);
    expect(first).toEqual(['r0']);
    expect(delivered).toBeLessThanOrEqual(4);
  });

  it('ends when its signal aborts, whether somebody waits or not', async () => {
    const stop = new AbortController();
    const stream = await opened({ signal: stop.signal });
    const waiting = stream.next();
    stop.abort();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
  });

  it('opens nothing for a signal that has aborted', async () => {
    const subscribe = vi.spyOn(connection.bus, 'subscribe');
    const stream = await opened({ signal: AbortSignal.abort() });
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    expect(subscribe).not.toHaveBeenCalled();
  });

  it('leaves its group when it is left before the first next()', async () => {
    const stream = await opened({ group: 'g' });
    await stream.return();
    const other = await opened({ group: 'g' });
    await installation.publish(scored('a', 1), 0);
    expect(await take(other, 1)).toEqual(['a']);
  });

  it('tells by ready and by next() that it could not be opened', async () => {
    vi.spyOn(connection.bus, 'subscribe').mockRejectedValue(new Error('no broker'));
    const stream = resultStream(connection);
    await expect(stream.ready).rejects.toThrow('no broker');
    await expect(stream.next()).rejects.toThrow('no broker');
    await stream.return();
  });

  it('disposes of itself', async () => {
    const onClosed = vi.fn();
    {
      await using stream = resultStream(connection, {}, onClosed);
      await stream.ready;
    }
    expect(onClosed).toHaveBeenCalledTimes(1);
  });
});

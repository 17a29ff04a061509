import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/adapters/system/clock.ts';
import { type Client, connect } from '../../../src/client/client.ts';
import { fp32 } from '../../../src/client/tensors.ts';
import { createCodecs } from '../../../src/contracts/codec.ts';
import type { Identity } from '../../../src/contracts/records.ts';
import { partitionForKey } from '../../../src/core/request/partition.ts';
import { INGRESS, type MemoryInstallation, memoryInstallation, scored } from './memory-installation.ts';

let installation: MemoryInstallation;
let client: Client;

beforeEach(async () => {
  installation = await memoryInstallation();
  client = await connect({ transport: { open: () => installation.open() } });
});

afterEach(async () => {
  await client.close();
  await installation.close();
});

const REQUEST = {
  model: 'ranker',
  baselineCandidates: 1,
  candidateTensors: [fp32('item', [1, 2], [1, 2])],
};

/** Where the requests lie that were sent so far. */
async function identities(): Promise<Identity[]> {
  const records = await installation.recordsOf(INGRESS);
  return records.map(({ topic, partition, offset }) => ({ topic, partition, offset }));
}

describe('a client', () => {
  it('sends requests, keyed by their id', async () => {
    expect(await client.requests.send({ ...REQUEST, requestId: 'r-1' })).toBe('r-1');
    const made = await client.requests.send(REQUEST);
    const requests = await installation.requests();
    expect(requests.map(({ requestId }) => requestId).sort()).toEqual(['r-1', made].sort());
    expect(requests[0]).toMatchObject({ model: 'ranker', priority: 5, resultPartition: null });
    for (const record of await installation.recordsOf(INGRESS))
      expect(record.partition).toBe(partitionForKey(record.key ?? Buffer.alloc(0), 4));
  });

  it('sends to the ingress topic of a tenant', async () => {
    await client.requests.send(REQUEST, { tenant: 'acme' });
    expect(await installation.recordsOf('millrace.ingress.acme.v1')).toHaveLength(1);
    expect(await installation.recordsOf(INGRESS)).toEqual([]);
  });

  it('scores: the request names the partition that its result is read from', async () => {
    const result = client.score({ ...REQUEST, requestId: 'r-1' });
    await vi.waitFor(async () => expect(await installation.requests()).toHaveLength(1));
    const [request] = await installation.requests();
    for (const identity of await identities())
      await installation.publish(scored('r-1', 0, { identity }), request?.resultPartition ?? -1);
    expect((await result).requestId).toBe('r-1');
  });

  it('scores: a request that repeats an aborted one under its id has its own result', async () => {
    const stop = new AbortController();
    const first = client.score({ ...REQUEST, requestId: 'r-1' }, { signal: stop.signal });
    await vi.waitFor(async () => expect(await identities()).toHaveLength(1));
    stop.abort();
    await expect(first).rejects.toMatchObject({ code: 'CLOSED' });
    const second = client.score({ ...REQUEST, requestId: 'r-1' });
    await vi.waitFor(async () => expect(await identities()).toHaveLength(2));
    const [request] = await installation.requests();
    for (const identity of await identities())
      await installation.publish(scored('r-1', 0, { identity }), request?.resultPartition ?? -1);
    expect((await second).identity.offset).toBe(1);
  });

  it('misses no result of what it sends right after it asked for results', async () => {
    const results = client.results();
    await client.requests.send({ ...REQUEST, requestId: 'r-1' });
    await installation.publish(scored('r-1', 0));
    for await (const { result } of results) {
      expect(result.requestId).toBe('r-1');
      break;
    }
  });

  it('publishes commands and outcomes', async () => {
    const commandId = await client.control.publish({
      scope: 'policy/starter',
      type: 'HOLD',
      body: 'why',
      actor: 'me',
    });
    const outcomeId = await client.outcomes.send({
      requestId: 'r-1',
      type: 'CLICK',
      attributionToken: 'token',
      reward: 1,
      occurredAt: 7,
    });
    const [command] = await installation.recordsOf('millrace.control.v1');
    const [outcome] = await installation.recordsOf('millrace.outcomes.v1');
    expect(command?.key?.toString()).toBe('policy/starter');
    expect(outcome?.key?.toString()).toBe('r-1');
    const codecs = createCodecs({ registry: installation.registry, clock: systemClock() });
    await codecs.learn({ schemaId: command?.value?.readInt32BE(1) ?? 0 });
    await codecs.learn({ schemaId: outcome?.value?.readInt32BE(1) ?? 0 });
    const readCommand = codecs.for('ControlCommand').decode(command?.value ?? null);
    const readOutcome = codecs.for('Outcome').decode(outcome?.value ?? null);
    expect(readCommand).toMatchObject({ status: 'ok', value: { commandId, type: 'HOLD', actor: 'me' } });
    expect(readOutcome).toMatchObject({ status: 'ok', value: { outcomeId, type: 'CLICK', reward: 1 } });
  });

  it('ends open streams and waiting calls when it closes', async () => {
    const results = client.results();
    const waiting = results.next();
    const call = client.score(REQUEST);
    const rejected = expect(call).rejects.toMatchObject({ code: 'CLOSED' });
    await client.close();
    await rejected;
    expect(await waiting).toEqual({ done: true, value: undefined });
    await expect(client.score(REQUEST)).rejects.toMatchObject({ code: 'CLOSED' });
  });
});

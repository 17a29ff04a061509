import { describe, expect, it } from 'vitest';
import { resultStream } from '../../src/client/result-stream.ts';
import type { ScoredResult } from '../../src/contracts/records.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { partitionForKey } from '../../src/core/request/partition.ts';
import { generatedArrivals } from '../../src/traffic/arrivals.ts';
import { readCatalogue } from '../../src/traffic/catalogue.ts';
import { drive } from '../../src/traffic/drive.ts';
import { createRequestMaker } from '../../src/traffic/request-maker.ts';
import { startVirtualPipeline, type VirtualPipeline } from './embedded-in-virtual-time.ts';

const catalogue = readCatalogue('models/catalogue');

async function sendTraffic(rig: VirtualPipeline, requests: number, seed: number): Promise<void> {
  const { client, clock } = rig;
  const random = seededRandom(seed);
  const topic = client.topics.ingress();
  const codec = client.codecs.for('ScoreRequest');
  const partitions = await rig.settle(client.bus.partitionCount(topic));
  const driven = drive({
    arrivals: generatedArrivals(
      { ratePerSecond: 500, candidatesMax: 32, historyRowsMax: 8 },
      random.stream('arrivals'),
    ),
    maker: createRequestMaker(catalogue, random.stream('requests')),
    clock,
    idPrefix: `s${seed}-`,
    send: (request) => {
      const key = Buffer.from(request.requestId);
      return client.bus.produce({
        topic,
        partition: partitionForKey(key, partitions),
        key,
        value: codec.encode(request),
      });
    },
    requestsMax: requests,
    durationMs: Number.POSITIVE_INFINITY,
  });
  await rig.settle(driven);
  await rig.settle(rig.ledger.drained(20_000, requests));
}

describe.each(['split', 'fused'])('the pipeline in virtual time, topology %s', (topology) => {
  it('ends every request exactly once', async () => {
    const results: ScoredResult[] = [];
    const rig = await startVirtualPipeline(
      { topology },
      { ledger: { onResult: (result) => results.push(result) } },
    );
    await sendTraffic(rig, 500, 7);
    const summary = rig.ledger.summary();
    expect(summary).toMatchObject({
      ingress: 500,
      inFlight: 0,
      duplicatesVisible: 0,
      unknown: 0,
      balanced: true,
    });
    expect(summary.outcomes.scored).toBe(500);
    expect(new Set(results.map((result) => result.requestId)).size).toBe(500);
    for (const result of results) {
      expect(result.candidatesScored).toBe(result.baselineCandidates);
      expect(result.scores.length).toBe(4 * result.candidatesScored);
      expect(result.candidateIds?.shape).toEqual([result.candidatesScored]);
      expect(result.policy?.leaf).toBeDefined();
      expect(result.target?.simulated).toBe(true);
    }
    await rig.close();
  });

  it('gives the same results again for the same seed', async () => {
    const runs: string[][] = [];
    for (let run = 0; run < 2; run += 1) {
      const lines: string[] = [];
      const rig = await startVirtualPipeline(
        { topology },
        {
          ledger: {
            onResult: (result) =>
              lines.push(
                `${result.requestId} ${result.outcome} ${result.candidatesScored} ${result.timings.totalMs}`,
              ),
          },
        },
      );
      await sendTraffic(rig, 200, 11);
      runs.push(lines);
      await rig.close();
    }
    expect(runs[0]).toHaveLength(200);
    expect(runs[1]).toEqual(runs[0]);
  });
});

describe('outcomes that are no score', () => {
  it('expires what finds no worker before its budget is over, and says where', async () => {
    const results: ScoredResult[] = [];
    const rig = await startVirtualPipeline({}, { ledger: { onResult: (result) => results.push(result) } });
    const worker = rig.pipeline.stages.find((stage) => stage.name === 'accelerator-worker');
    await rig.settle(worker?.close() ?? Promise.resolve());
    await sendTraffic(rig, 20, 3);
    expect(rig.ledger.summary()).toMatchObject({
      ingress: 20,
      inFlight: 0,
      balanced: true,
      outcomes: { expired: 20, scored: 0 },
    });
    for (const result of results)
      expect(result.reason).toMatchObject({
        code: 'BUDGET_EXHAUSTED',
        message: expect.stringContaining('in the router'),
      });
    await rig.close();
  });

  it('dead-letters what cannot be read, goes on behind it, and keeps the original bytes', async () => {
    const rig = await startVirtualPipeline();
    const { client } = rig;
    const topic = client.topics.ingress();
    const garbage = Buffer.from('not a frame at all');
    const dead: Buffer[] = [];
    const reader = await rig.settle(
      client.bus.read({ topics: [client.topics.deadLetter(topic)], startAt: 'earliest' }, (records) => {
        for (const record of records) if (record.value !== null) dead.push(record.value);
      }),
    );
    await rig.settle(client.bus.produce({ topic, partition: 0, key: Buffer.from('bad'), value: garbage }));
    await sendTraffic(rig, 50, 5);
    expect(rig.ledger.summary()).toMatchObject({
      ingress: 51,
      inFlight: 0,
      balanced: true,
      outcomes: { deadLettered: 1, scored: 50 },
    });
    expect(dead).toEqual([garbage]);
    await rig.settle(reader.close());
    await rig.close();
  });
});

describe('the stream of results', () => {
  it('delivers each result once, honours the abort signal, and leaves its group', async () => {
    const rig = await startVirtualPipeline();
    const stop = new AbortController();
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { result } of resultStream(rig.client, { signal: stop.signal, bufferMax: 16 }))
        seen.push(result.requestId);
    })();
    await rig.clock.advanceBy(500);
    await sendTraffic(rig, 100, 9);
    await rig.clock.advanceBy(1_000);
    stop.abort();
    await rig.settle(reading);
    expect(seen).toHaveLength(100);
    expect(new Set(seen).size).toBe(100);
    await rig.close();
  });
});

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { partitionForKey } from '../../src/core/request/partition.ts';
import type { Stack } from '../../src/local-stack/stack.ts';
import { startStack } from '../../src/local-stack/start-stack.ts';
import { applyTopics } from '../../src/wiring/apply-topics.ts';
import { expectAllScored, type Load, moreResults, startLoad } from './load.ts';
import { eventually, type RealPipeline, startRealPipeline } from './real-pipeline.ts';

const DRAIN_MS = 15_000;
let stack: Stack;
let pipeline: RealPipeline;

beforeAll(async () => {
  stack = await startStack();
  pipeline = await startRealPipeline(stack.environment, {
    later: [
      { name: 'extractor-2', service: 'feature-extractor' },
      { name: 'router-2', service: 'request-router' },
    ],
  });
});

afterAll(async () => {
  await pipeline?.close();
  await stack?.stop();
});

/** Appends a record that nobody can read; answers its offset. */
async function sendGarbage(partition: number): Promise<number> {
  const { bus, topics } = pipeline.client;
  const key = 'garbage';
  let offset = -1;
  const reader = await bus.read(
    { topics: [topics.ingress()], partitions: [partition], startAt: 'latest' },
    (records) => {
      for (const record of records) if (record.key?.toString() === key) offset = record.offset;
    },
  );
  await bus.produce({
    topic: topics.ingress(),
    partition,
    key: Buffer.from(key),
    value: Buffer.from('no frame'),
  });
  await eventually(() => offset >= 0, 'the garbage is read back');
  await reader.close();
  return offset;
}

/**
 * Looks again and again at what the groups of both stages have committed. Whoever commits for a partition that is another's by now sets it back.
 */
function watchCommits(): { end(): Promise<{ backwards: string[]; seen: number }> } {
  const { bus, topics } = pipeline.client;
  const watched = [
    { group: `${topics.prefix}.feature-extractor`, topic: topics.ingress() },
    { group: `${topics.prefix}.request-router`, topic: topics.fixed('features') },
  ];
  const highest = new Map<string, number>();
  const backwards: string[] = [];
  let seen = 0;
  let ended = false;
  const look = async ({ group, topic }: (typeof watched)[number]): Promise<void> => {
    for (const [partition, offset] of await bus.admin.committed(group, topic)) {
      const key = `${topic}/${partition}`;
      const before = highest.get(key) ?? -1;
      if (offset < before) backwards.push(`${key}: ${before} → ${offset}`);
      if (offset > before) seen += 1;
      highest.set(key, offset);
    }
  };
  const watching = (async () => {
    while (!ended) {
      for (const each of watched) await look(each);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();
  return {
    async end() {
      ended = true;
      await watching;
      return { backwards, seen };
    },
  };
}

describe('faults on real processes', () => {
  let load: Load;
  beforeEach(async () => {
    load = await startLoad(pipeline.client);
    await moreResults(load.ledger, 30);
  });

  afterEach(async () => {
    await load.end();
  });

  it('row 6: Redis down: routing goes on with what is known, no request errors', async () => {
    await stack.stopRedis();
    await moreResults(load.ledger, 200);
    await stack.startRedis();
    await moreResults(load.ledger, 50);
    expectAllScored(await load.end());
  });

  it('row 24: dead-letter topic unavailable: nothing past the poison is committed, and all goes on when it is back', async () => {
    const { bus, topics } = pipeline.client;
    const ingress = topics.ingress();
    const deadLetters = topics.deadLetter(ingress);
    const group = `${topics.prefix}.feature-extractor`;
    await bus.admin.deleteTopics([deadLetters]);
    const offset = await sendGarbage(0);
    await moreResults(load.ledger, 200);
    expect((await bus.admin.committed(group, ingress)).get(0) ?? -1).toBeLessThanOrEqual(offset);
    await applyTopics(pipeline.settings, bus);
    await eventually(
      async () => ((await bus.admin.committed(group, ingress)).get(0) ?? -1) > offset,
      'the commit passes the poison',
      120_000,
    );
    const summary = await load.end();
    expect(summary).toMatchObject({
      inFlight: 0,
      balanced: true,
      outcomes: { deadLettered: 1, scored: summary.ingress - 1 },
    });
    expect((await bus.admin.watermarks(deadLetters))[0]?.high).toBe(1);
  });

  it('row 26: rebalance mid-batch: members come and go under load, nothing is lost and nothing is visible twice', async () => {
    const commits = watchCommits();
    await Promise.all(['extractor-2', 'router-2'].map((name) => pipeline.start(name)));
    await moreResults(load.ledger, 100);
    await pipeline.kill('extractor');
    await moreResults(load.ledger, 100);
    await pipeline.start('extractor');
    await pipeline.stop('router-2');
    await moreResults(load.ledger, 100);
    await pipeline.stop('extractor-2');
    await moreResults(load.ledger, 100);
    const { backwards, seen } = await commits.end();
    expect(backwards).toEqual([]);
    expect(seen).toBeGreaterThan(50);
    expectAllScored(await load.end());
  });

  it.each(['extractor', 'router', 'worker-1', 'worker-2'])(
    'row 34: SIGTERM to the %s: drained within 10 s, nothing lost',
    async (name) => {
      const victim = pipeline.process(name);
      const at = Date.now();
      victim.kill('SIGTERM');
      expect(await victim.ended).toBe(0);
      expect(Date.now() - at).toBeLessThan(DRAIN_MS);
      await pipeline.start(name);
      await moreResults(load.ledger, 50);
      expectAllScored(await load.end());
    },
  );

  it('row 35: schema registry down: known schemas go on; an unknown id waits and is no dead letter for it', async () => {
    const { bus, topics } = pipeline.client;
    await stack.stopRegistry();
    await moreResults(load.ledger, 100);
    const unknown = Buffer.concat([Buffer.from([0, 0, 0x0f, 0xff, 0xff]), Buffer.from('body')]);
    await bus.produce({
      topic: topics.ingress(),
      partition: partitionForKey(Buffer.from('unknown'), 4),
      key: Buffer.from('unknown'),
      value: unknown,
    });
    await moreResults(load.ledger, 100);
    expect(load.ledger.summary().outcomes.deadLettered).toBe(0);
    await stack.startRegistry();
    const summary = await load.end();
    expect(summary).toMatchObject({
      inFlight: 0,
      balanced: true,
      outcomes: { deadLettered: 1, scored: summary.ingress - 1 },
    });
  });

  it('row 27: broker restart with all stages running: recovers by itself, nothing lost', async () => {
    await stack.restartBroker(0);
    await moreResults(load.ledger, 100);
    const summary = await load.end();
    expect(summary).toMatchObject({ inFlight: 0, duplicatesVisible: 0, balanced: true });
    expect(summary.outcomes.scored).toBe(summary.ingress);
  });
});

import { describe, expect, it } from 'vitest';
import {
  makePoolStatus,
  makePublishedVersion,
  type PublishedVersion,
} from '../../../../src/contracts/records.ts';
import { topicSpecs } from '../../../../src/contracts/topic-specs.ts';
import { createTopicDelay } from '../../../../src/core/latency/topic-delay.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { openFleetVersions } from '../../../../src/stages/policy-controller/fleet-versions.ts';
import { MemoryWorld } from '../../adapters/memory/bus.fixture.ts';
import { codecs, topics } from '../records.fixture.ts';
import { checkPolicy } from './controller.fixture.ts';

async function open() {
  const world = new MemoryWorld();
  const { clock, telemetry } = world;
  const bus = world.connect();
  await world.settle(
    bus.admin.createTopics(
      topicSpecs({ topics, partitions: 1, replication: 1, pools: new Map(), tenants: [] }),
    ),
  );
  const random = seededRandom(1);
  const deps = { bus, codecs, topics, clock, random, telemetry, topicDelay: createTopicDelay() };
  const versions = await world.settle(openFleetVersions(deps, (accelerator) => [`${accelerator}-pool`]));
  const beat = async (
    worker: string,
    published: Partial<PublishedVersion>[],
    pool = 'cpu-pool',
  ): Promise<void> => {
    const status = makePoolStatus({
      pool,
      capacityClass: 'DEDICATED',
      worker,
      incarnation: '1',
      accelerator: 'cpu',
      backend: 'none',
      models: [{ family: 'ranker', version: '1', variant: 'BASELINE' }],
      published: published.map((each) => makePublishedVersion({ family: 'ranker', version: '3', ...each })),
    });
    const value = codecs.for('PoolStatus').encode(status);
    const topic = topics.fixed('pool-status');
    await world.settle(bus.produce({ topic, partition: 0, key: Buffer.from(worker), value }));
    await clock.advanceBy(10);
  };
  const asked = (names: string, how: 'all' | 'some' = 'all'): string[] =>
    versions.notReady(checkPolicy(Buffer.from(`feed 1 ${names}`)), how);
  return { world, clock, versions, beat, asked };
}

describe('what the fleet can run', () => {
  it('is what its live workers say, on the pools of the policy', async () => {
    const { clock, beat, asked, versions } = await open();
    expect(asked('ranker@3')).toEqual(['no live worker of cpu-pool has told that it can run ranker@3']);
    await beat('w1', [{ status: 'READY' }]);
    await beat('elsewhere', [], 'other-pool');
    expect(asked('ranker@3')).toEqual([]);
    expect(asked('ranker@1')).toEqual([]);
    expect(asked('')).toEqual([]);
    await beat('w2', [{ status: 'FAILED', reason: 'no' }]);
    expect(asked('ranker@3')).toEqual(['w2 (pool cpu-pool) refuses ranker@3: no']);
    await clock.advanceBy(5_000);
    expect(asked('ranker@3')).toEqual(['no live worker of cpu-pool has told that it can run ranker@3']);
    await versions.close();
  });

  it('is known a second after it began to listen', async () => {
    const { world, clock, versions } = await open();
    expect(versions.hasHeard()).toBe(false);
    const heard = versions.heard();
    await clock.advanceBy(1_000);
    await heard;
    expect(versions.hasHeard()).toBe(true);
    await world.settle(versions.heard());
  });
});

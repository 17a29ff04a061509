import { describe, expect, it } from 'vitest';
import {
  makePoolStatus,
  makePublishedVersion,
  type PublishedVersion,
} from '../../../../src/contracts/records.ts';
import { topicSpecs } from '../../../../src/contracts/topic-specs.ts';
import { createTopicDelay } from '../../../../src/core/latency/topic-delay.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import type { FamilyContract } from '../../../../src/core/request/family.ts';
import { followFamilyVersions } from '../../../../src/stages/feature-extractor/family-versions.ts';
import { MemoryWorld } from '../../adapters/memory/bus.fixture.ts';
import { codecs, topics } from '../records.fixture.ts';

const RANKER: FamilyContract = {
  family: 'ranker',
  slaMs: 100,
  versions: [{ version: '1', variant: 'baseline' }],
  candidatesMax: 10,
  sequenceLengthMax: 10,
  tensorBytesMax: 1_000,
  inputs: [],
};

async function open() {
  const world = new MemoryWorld();
  const { clock, telemetry } = world;
  const bus = world.connect();
  await world.settle(
    bus.admin.createTopics(
      topicSpecs({ topics, partitions: 1, replication: 1, pools: new Map(), tenants: [] }),
    ),
  );
  const deps = {
    bus,
    codecs,
    topics,
    clock,
    random: seededRandom(1),
    telemetry,
    topicDelay: createTopicDelay(),
  };
  const versions = await world.settle(
    followFamilyVersions(deps, new Map([['ranker', RANKER]]), { forgetWorkersMs: 10_000 }),
  );
  const say = async (worker: string, published: Partial<PublishedVersion>[] | null): Promise<void> => {
    const value =
      published === null
        ? null
        : codecs.for('PoolStatus').encode(
            makePoolStatus({
              ...{ pool: 'cpu', capacityClass: 'DEDICATED', worker, incarnation: '1', accelerator: 'cpu' },
              backend: 'none',
              published: published.map((each) =>
                makePublishedVersion({ family: 'ranker', version: '3', status: 'READY', ...each }),
              ),
            }),
          );
    const topic = topics.fixed('pool-status');
    await world.settle(bus.produce({ topic, partition: 0, key: Buffer.from(worker), value }));
    await clock.advanceBy(10);
  };
  const known = (): string[] =>
    (versions.families.get('ranker')?.versions ?? []).map(({ version, variant }) => `${version} ${variant}`);
  return { versions, clock, say, known };
}

describe('the versions that a request may pin', () => {
  it('are those of the folder, and those that a worker has ready', async () => {
    const { say, known, versions } = await open();
    expect(known()).toEqual(['1 baseline']);
    await say('w1', [
      { version: '10', variant: 'ENHANCED' },
      { version: '3' },
      { version: '4', status: 'LOADING' },
    ]);
    await say('w2', [{ version: '3' }, { family: 'ads', version: '7' }]);
    expect(known()).toEqual(['1 baseline', '3 baseline', '10 enhanced']);
    expect([...versions.families.keys()]).toEqual(['ranker']);
    await say('w1', []);
    expect(known()).toEqual(['1 baseline', '3 baseline']);
    await say('w2', null);
    expect(known()).toEqual(['1 baseline']);
    await versions.close();
  });

  it('are forgotten with the worker that alone had them, once it was silent for long', async () => {
    const { say, known, versions, clock } = await open();
    await say('w1', [{ version: '3' }, { version: '4' }]);
    await say('w2', [{ version: '3' }]);
    for (let n = 0; n < 9; n += 1) {
      await clock.advanceBy(1_000);
      await say('w2', [{ version: '3' }]);
    }
    expect(known()).toEqual(['1 baseline', '3 baseline', '4 baseline']);
    await clock.advanceBy(2_500);
    expect(known()).toEqual(['1 baseline', '3 baseline']);
    await say('w1', [{ version: '4' }]);
    expect(known()).toEqual(['1 baseline', '3 baseline', '4 baseline']);
    await versions.close();
    expect(clock.pending).toBe(0);
  });
});

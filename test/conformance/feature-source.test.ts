import { afterEach, describe } from 'vitest';
import { memoryFeatureSource } from '../../src/adapters/memory/feature-source.ts';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { redisFeatureSource } from '../../src/adapters/redis/feature-source.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { writeRows } from './feast-writer.ts';
import { featureSourceSuite } from './feature-source.suite.ts';
import { faultyWay, redisUrl, uniquePrefix } from './redis.fixture.ts';

let ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends) await end();
  ends = [];
});

describe('FeatureSource in memory', () => {
  featureSourceSuite(async () => {
    const source = memoryFeatureSource(systemClock());
    return {
      source,
      put: async (rows) => rows.forEach(source.put.bind(source)),
      away: async () => source.stop(),
      back: async () => source.start(),
    };
  });
});

describe('FeatureSource on Redis, as Feast writes it', () => {
  featureSourceSuite(async () => {
    const way = await faultyWay(redisUrl());
    const project = uniquePrefix();
    const clock = systemClock();
    const source = redisFeatureSource({ url: way.url, project, clock, telemetry: silentTelemetry() });
    ends.push(() => source.close(), way.close);
    return {
      source,
      put: (rows) => writeRows(redisUrl(), project, rows),
      away: async () => way.drop(),
      back: async () => way.pass(),
    };
  });
});

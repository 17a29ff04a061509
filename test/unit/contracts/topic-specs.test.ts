import { describe, expect, it } from 'vitest';
import { recordTopics, topicSpecs } from '../../../src/contracts/topic-specs.ts';
import { TOPICS, topicNames } from '../../../src/contracts/topics.ts';

const topics = topicNames('acme');
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

function plan(overrides: Partial<Parameters<typeof topicSpecs>[0]> = {}) {
  const specs = topicSpecs({
    topics,
    partitions: 48,
    replication: 3,
    pools: new Map([
      ['cpu', 4],
      ['a100', 9],
    ]),
    tenants: ['news'],
    ...overrides,
  });
  return new Map(specs.map((spec) => [spec.name, spec]));
}

describe('the topics of an installation', () => {
  it('are all that the contracts name, each once', () => {
    const specs = topicSpecs({
      topics,
      partitions: 1,
      replication: 1,
      pools: new Map([['cpu', 1]]),
      tenants: ['news'],
    });
    expect(specs.map(({ name }) => name).sort()).toEqual(
      [
        'acme.ingress.v1',
        'acme.ingress.news.v1',
        'acme.features.v1',
        'acme.dispatch.cpu.v1',
        'acme.acks.v1',
        'acme.scored-results.v1',
        'acme.outcomes.v1',
        'acme.latency-metrics.v1',
        'acme.routing-metrics.v1',
        'acme.pool-status.v1',
        'acme.control.v1',
        'acme.control-events.v1',
        'acme.ingress.v1.dlq',
        'acme.ingress.news.v1.dlq',
        'acme.features.v1.dlq',
        'acme.dispatch.cpu.v1.dlq',
      ].sort(),
    );
  });

  it.each([
    ['acme.ingress.v1', 48, HOUR_MS],
    ['acme.ingress.news.v1', 48, HOUR_MS],
    ['acme.features.v1', 48, HOUR_MS],
    ['acme.dispatch.cpu.v1', 4, HOUR_MS],
    ['acme.dispatch.a100.v1', 9, HOUR_MS],
    ['acme.acks.v1', 48, 10 * MINUTE_MS],
    ['acme.scored-results.v1', 48, HOUR_MS],
    ['acme.outcomes.v1', 48, 14 * DAY_MS],
    ['acme.pool-status.v1', 1, HOUR_MS],
    ['acme.control.v1', 1, -1],
    ['acme.control-events.v1', 1, -1],
    ['acme.ingress.v1.dlq', 1, 72 * HOUR_MS],
    ['acme.dispatch.cpu.v1.dlq', 1, 72 * HOUR_MS],
  ])('%s has %d partitions and is kept for %d ms', (name, partitions, retentionMs) => {
    expect(plan().get(name)).toMatchObject({
      partitions,
      replication: 3,
      config: { 'retention.ms': String(retentionMs) },
    });
  });

  it('are kept whole where they are the truth, whatever size the cluster lets its topics have', () => {
    const whole = [...plan().values()].filter(({ config }) => config['retention.bytes'] === '-1');
    expect(whole.map(({ name }) => name)).toEqual(['acme.control.v1', 'acme.control-events.v1']);
  });

  it('are stamped by the broker, and compacted where only the last word counts', () => {
    for (const { name, config } of plan().values()) {
      expect(config['message.timestamp.type'], name).toBe('LogAppendTime');
      expect(config['cleanup.policy'], name).toBe(name === 'acme.pool-status.v1' ? 'compact' : undefined);
    }
  });

  it.each([
    [1, '1'],
    [2, '1'],
    [3, '2'],
    [5, '2'],
  ])('at replication %d need %s replicas in sync', (replication, inSync) => {
    for (const spec of plan({ replication }).values())
      expect([spec.replication, spec.config['min.insync.replicas']]).toEqual([replication, inSync]);
  });

  it('take requests of 1 MiB, and everything that wraps one takes more', () => {
    for (const { name, config } of plan().values()) {
      const isIngress = /\.ingress(\.news)?\.v1$/.test(name);
      const bytesMax = Number(config['max.message.bytes']);
      if (isIngress) expect(bytesMax, name).toBe(2 ** 20);
      else expect(bytesMax, name).toBeGreaterThanOrEqual(2 ** 20 + 128 * 1_024);
    }
  });
});

describe('what the values of topics are', () => {
  it('is said for every topic but dead letters', () => {
    const records = recordTopics({ topics, tenants: ['news'], pools: ['cpu', 'a100'] });
    expect([...records.keys()].sort()).toEqual(
      [...plan().keys()].filter((name) => !name.endsWith('.dlq')).sort(),
    );
    expect(records.get('acme.ingress.news.v1')).toBe(TOPICS.ingress);
    expect(records.get('acme.dispatch.a100.v1')?.record).toBe('Dispatch');
    for (const { compatibility } of records.values()) expect(compatibility).toBe('FULL_TRANSITIVE');
  });
});

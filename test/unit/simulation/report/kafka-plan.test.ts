import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ClusterLoad,
  type KafkaAssumptions,
  planKafka,
  type TopicLoad,
} from '../../../../src/simulation/report/kafka-plan.ts';

const ASSUMED: KafkaAssumptions = {
  replication: 3,
  partitionBytesPerSecond: 10e6,
  brokerWrittenBytesPerSecond: 45e6,
  brokerSentBytesPerSecond: 60e6,
  brokerPartitions: 1_000,
  headroom: 0.4,
};

function topic(of: Partial<TopicLoad> = {}): TopicLoad {
  return {
    ...{ topic: 'features.v1', recordsPerSecond: 100, inBytesPerSecond: 1e6, outBytesPerSecond: 1e6 },
    ...{ slots: 0, isReadByAll: false, ...of },
  };
}

const load = (...topics: TopicLoad[]): ClusterLoad => ({ topics, redisPerSecond: 5 });

const rate = fc.integer({ min: 0, max: 1_000_000_000 });
const topics = fc.array(
  fc.record({
    topic: fc.constant('t'),
    ...{ recordsPerSecond: rate, inBytesPerSecond: rate, outBytesPerSecond: rate },
    ...{ slots: fc.integer({ min: 0, max: 100 }), isReadByAll: fc.boolean() },
  }),
  { minLength: 1, maxLength: 8 },
);
const scale = fc.integer({ min: 1, max: 100_000 }).map((hundredths) => hundredths / 100);
const assumed = fc.record({
  replication: fc.integer({ min: 1, max: 5 }),
  // With less of a broker there would be more of them than a number counts.
  partitionBytesPerSecond: fc.integer({ min: 10_000, max: 50_000_000 }),
  brokerWrittenBytesPerSecond: fc.integer({ min: 10_000, max: 500_000_000 }),
  brokerSentBytesPerSecond: fc.integer({ min: 10_000, max: 500_000_000 }),
  brokerPartitions: fc.integer({ min: 1, max: 4_000 }),
  headroom: fc.integer({ min: 0, max: 99 }).map((percent) => percent / 100),
});

describe('the plan of a cluster', () => {
  it.each([
    ['copies', load(topic()), 3],
    // 20 MB/s in three copies, of 45 MB/s of which 40 % stay free.
    ['written', load(topic({ inBytesPerSecond: 20e6, outBytesPerSecond: 20e6 })), 3],
    ['written', load(topic({ inBytesPerSecond: 100e6, outBytesPerSecond: 0 })), 12],
    // 200 MB/s to readers and 40 MB/s to followers, of 36 MB/s a broker.
    ['sent', load(topic({ inBytesPerSecond: 20e6, outBytesPerSecond: 200e6 })), 7],
    // 3000 partitions in three copies, of 600 a broker.
    ['partitions', load(topic({ slots: 3_000 })), 15],
  ] as const)('has brokers for what is the tightest: %s', (brokersFor, of, brokers) => {
    const plan = planKafka(of, 1, ASSUMED);
    expect(plan.brokers).toBe(brokers);
    if (brokers > 3) expect(plan.brokersFor).toBe(brokersFor);
  });

  it('has partitions for the bytes, and one for each slot', () => {
    const needs = (of: Partial<TopicLoad>, times = 1) =>
      planKafka(load(topic(of)), times, ASSUMED).partitions;
    expect(needs({ inBytesPerSecond: 0 })).toBe(1);
    expect(needs({ inBytesPerSecond: 6e6 })).toBe(1);
    expect(needs({ inBytesPerSecond: 6.1e6 })).toBe(2);
    expect(needs({ slots: 4 })).toBe(4);
    expect(needs({ slots: 4 }, 2.5)).toBe(10);
  });

  it('lets what every process reads grow with the square of the load, and all else with the load', () => {
    const plan = planKafka(load(topic({ isReadByAll: true }), topic()), 10, ASSUMED);
    expect(plan.topics.map((each) => each.outBytesPerSecond)).toEqual([100e6, 10e6]);
    expect(plan.topics.map((each) => each.recordsPerSecond)).toEqual([1_000, 1_000]);
    expect(plan.redisPerSecond).toBe(50);
  });

  it('is never less than one partition a topic, and a broker for each copy', () => {
    fc.assert(
      fc.property(topics, scale, assumed, (of, times, by) => {
        const plan = planKafka({ topics: of, redisPerSecond: 0 }, times, by);
        expect(plan.brokers).toBeGreaterThanOrEqual(by.replication);
        for (const each of plan.topics) expect(each.partitions).toBeGreaterThanOrEqual(1);
      }),
    );
  });

  it('keeps within every limit, and would not with a broker less', () => {
    fc.assert(
      fc.property(topics, scale, assumed, (of, times, by) => {
        const plan = planKafka({ topics: of, redisPerSecond: 0 }, times, by);
        const uses = (brokers: number): boolean =>
          brokers >= by.replication &&
          plan.writtenBytesPerSecond / (by.brokerWrittenBytesPerSecond * (1 - by.headroom)) <= brokers &&
          plan.sentBytesPerSecond / (by.brokerSentBytesPerSecond * (1 - by.headroom)) <= brokers &&
          (plan.partitions * by.replication) / (by.brokerPartitions * (1 - by.headroom)) <= brokers;
        expect(uses(plan.brokers)).toBe(true);
        expect(uses(plan.brokers - 1)).toBe(false);
      }),
    );
  });

  it('never needs less for more load, more copies or more room', () => {
    fc.assert(
      fc.property(topics, scale, assumed, fc.integer({ min: 0, max: 2 }), (of, times, by, what) => {
        const before = planKafka({ topics: of, redisPerSecond: 1 }, times, by);
        const after = planKafka(
          { topics: of, redisPerSecond: 1 },
          what === 0 ? times * 1.5 : times,
          what === 1
            ? { ...by, replication: by.replication + 1 }
            : what === 2
              ? { ...by, headroom: (1 + by.headroom) / 2 }
              : by,
        );
        expect(after.brokers).toBeGreaterThanOrEqual(before.brokers);
        expect(after.partitions).toBeGreaterThanOrEqual(before.partitions);
        expect(after.redisPerSecond).toBeGreaterThanOrEqual(before.redisPerSecond);
      }),
    );
  });

  it('writes each byte once a copy, and sends it to each reader and follower', () => {
    fc.assert(
      fc.property(topics, assumed, (of, by) => {
        const plan = planKafka({ topics: of, redisPerSecond: 0 }, 1, by);
        const one = planKafka({ topics: of, redisPerSecond: 0 }, 1, { ...by, replication: 1 });
        expect(plan.writtenBytesPerSecond).toBe(by.replication * one.writtenBytesPerSecond);
        const followers = (by.replication - 1) * one.writtenBytesPerSecond;
        expect(plan.sentBytesPerSecond).toBe(one.sentBytesPerSecond + followers);
      }),
    );
  });
});

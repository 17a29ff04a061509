import { describe, expect, it } from 'vitest';
import type { MetricGuardrail } from '../../../../src/core/policy/document.ts';
import { type MetricReading, readingOf } from '../../../../src/core/rollout/metric-reading.ts';
import { MetricPoller } from '../../../../src/stages/policy-controller/metric-poller.ts';

const guardrail = (name: string): MetricGuardrail => ({
  name,
  query: `query of ${name}`,
  min: undefined,
  max: 1,
  forMs: 0,
  breach: 'hold',
});

/** A store of metrics that answers when the test says so. */
function handDriven() {
  const asked: string[] = [];
  const answers: ((reading: MetricReading) => void)[] = [];
  return {
    asked,
    answer: async (value: number) => {
      for (const answer of answers.splice(0)) answer(readingOf([value]));
      await new Promise((resolve) => setImmediate(resolve));
    },
    read: (query: string): Promise<MetricReading> => {
      asked.push(query);
      return new Promise((resolve) => answers.push(resolve));
    },
  };
}

describe('the poller of guardrails', () => {
  it('reads from one look to the next, and never waits', async () => {
    const store = handDriven();
    const poller = new MetricPoller(store);
    const queries = [guardrail('a'), guardrail('b')];
    expect(poller.take('policy/feed', 'one', queries)).toEqual({});
    expect(store.asked).toEqual(['query of a', 'query of b']);
    await store.answer(1);
    expect(poller.take('policy/feed', 'one', queries)).toEqual({ a: readingOf([1]), b: readingOf([1]) });
    await store.answer(2);
    expect(poller.take('policy/feed', 'one', queries)).toEqual({ a: readingOf([2]), b: readingOf([2]) });
  });

  it('asks no second time while the first has no answer, and hands no reading out twice', async () => {
    const store = handDriven();
    const poller = new MetricPoller(store);
    for (let looks = 0; looks < 3; looks += 1)
      expect(poller.take('policy/feed', 'one', [guardrail('a')])).toEqual({});
    expect(store.asked).toHaveLength(1);
    await store.answer(1);
    expect(poller.take('policy/feed', 'one', [])).toEqual({ a: readingOf([1]) });
    expect(poller.take('policy/feed', 'one', [])).toEqual({});
    expect(store.asked).toHaveLength(1);
  });

  it('knows nothing of an earlier rollout, also where its answer comes late', async () => {
    const store = handDriven();
    const poller = new MetricPoller(store);
    poller.take('policy/feed', 'one', [guardrail('a')]);
    await store.answer(1);
    expect(poller.take('policy/feed', 'two', [guardrail('a')])).toEqual({});
    poller.take('policy/feed', 'three', [guardrail('a')]);
    await store.answer(2);
    expect(poller.take('policy/feed', 'three', [guardrail('a')])).toEqual({ a: readingOf([2]) });
    expect(poller.take('policy/feed', 'four', [guardrail('a')])).toEqual({});
  });

  it('keeps the readings of one policy from another', async () => {
    const store = handDriven();
    const poller = new MetricPoller(store);
    poller.take('policy/feed', 'one', [guardrail('a')]);
    await store.answer(1);
    expect(poller.take('policy/other', 'one', [guardrail('a')])).toEqual({});
    expect(poller.take('policy/feed', 'one', [guardrail('a')])).toEqual({ a: readingOf([1]) });
  });
});

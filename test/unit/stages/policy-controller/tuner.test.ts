import { afterEach, describe, expect, it } from 'vitest';
import type { MemoryConnection } from '../../../../src/adapters/memory/bus.ts';
import { makePoolStatus, makeWorkerWindow, type WorkerWindow } from '../../../../src/contracts/records.ts';
import { topicSpecs } from '../../../../src/contracts/topic-specs.ts';
import { MISFIT } from '../../../../src/core/control/json-shape.ts';
import { LatencySketch } from '../../../../src/core/latency/sketch.ts';
import { createTopicDelay } from '../../../../src/core/latency/topic-delay.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { decideTuning } from '../../../../src/core/tuning/decide-tuning.ts';
import { tuningObservationShape } from '../../../../src/core/tuning/event-shape.ts';
import { evolveTuning } from '../../../../src/core/tuning/evolve-tuning.ts';
import { INITIAL_TUNING } from '../../../../src/core/tuning/tuning-state.ts';
import { DEFAULT_TUNING } from '../../../../src/core/tuning/tuning-terms.ts';
import { openTuner, type Tuned, type Tuner } from '../../../../src/stages/policy-controller/tuner.ts';
import { TuningWindows } from '../../../../src/stages/policy-controller/tuning-windows.ts';
import { FLEET, policyText } from '../../../simulation/tuning-domains.ts';
import { MemoryWorld } from '../../adapters/memory/bus.fixture.ts';
import { codecs, routable, topics } from '../records.fixture.ts';

function sketch(count: number, ms: number): Buffer {
  const made = new LatencySketch();
  for (let i = 0; i < count; i += 1) made.add(ms * (1 + i / count));
  return made.toBytes();
}

function window(sequence: number, fields: Partial<WorkerWindow> = {}): WorkerWindow {
  return makeWorkerWindow({
    worker: 'w',
    incarnation: '1',
    sequence,
    windowStartMs: 0,
    windowMs: 1_000,
    pool: 'a100',
    kernel: 'dense',
    memory: 'hbm',
    model: 'ranker',
    modelVersion: '1',
    policy: 'tuned',
    policyEpoch: 7,
    outcomes: { SCORED: 8, EXPIRED: 2 },
    queueSketch: sketch(10, 1),
    computeSketch: sketch(10, 10),
    endToEndSketch: sketch(10, 20),
    ...fields,
  });
}

const status = (utilisation: number) =>
  makePoolStatus({
    pool: 'a100',
    capacityClass: 'DEDICATED',
    worker: 'w',
    incarnation: '1',
    accelerator: 'gpu-a100',
    backend: 'simulated',
    models: [],
    build: '1',
    utilisation,
  });

describe('TuningWindows', () => {
  it('merges windows by pool and memory domain, each once', () => {
    const windows = new TuningWindows();
    expect(windows.observe(1, 7, {}, 1_000)).toBeUndefined();
    windows.takeWindow(window(1));
    windows.takeWindow(window(2));
    windows.takeWindow(window(2));
    windows.takeWindow(window(3, { memory: 'l2', outcomes: { SCORED: 1 } }));
    windows.takeStatus(status(0.2));
    windows.takeStatus(status(0.6));
    const seen = windows.observe(1, 7, { 'a100/hbm': { queue: 1.5, kernel: 100, endToEnd: 20 } }, 181_000);
    expect(seen).toMatchObject({
      periodMs: 180_000,
      domains: {
        'a100/hbm': {
          requests: 20,
          utilisation: 0.4,
          latency: { queue: { count: 20, over: 8 }, kernel: { count: 20, over: 0 } },
        },
        'a100/l2': { requests: 1, latency: { endToEnd: { over: 0 } } },
      },
    });
    expect(seen?.domains['a100/hbm']?.latency.kernel.p50Ms).toBeCloseTo(14, 0);
    expect(windows.observe(1, 7, {}, 361_000)).toEqual({ periodMs: 180_000, domains: {} });
  });

  it('counts what the live version decided, in its stable arm', () => {
    const windows = new TuningWindows();
    windows.begin(2, 8, 0);
    windows.takeWindow(window(1));
    windows.takeWindow(window(2, { policyEpoch: 8, arm: 'CANARY' }));
    windows.takeWindow(window(3, { policyEpoch: 9 }));
    expect(windows.observe(2, 9, {}, 1_000)?.domains['a100/hbm']?.requests).toBe(10);
    expect(windows.observe(3, 10, {}, 2_000)).toBeUndefined();
  });
});

describe('openTuner', () => {
  const world = new MemoryWorld();
  let bus: MemoryConnection;
  let tuner: Tuner | undefined;

  afterEach(async () => {
    await world.settle(tuner?.close() ?? Promise.resolve());
  });

  async function produce(topic: string, key: string, value: Buffer): Promise<void> {
    await world.settle(bus.produce({ topic, partition: 0, key: Buffer.from(key), value }));
  }

  it('makes an observation that the controller can decide by', async () => {
    bus = world.connect();
    await world.settle(
      bus.admin.createTopics(
        topicSpecs({ topics, partitions: 1, replication: 1, pools: new Map(), tenants: [] }),
      ),
    );
    const { clock, telemetry } = world;
    const deps = {
      bus,
      codecs,
      topics,
      clock,
      telemetry,
      random: seededRandom(1),
      topicDelay: createTopicDelay(),
    };
    tuner = await world.settle(openTuner(deps, FLEET));
    const tuned: Tuned = { document: parsePolicy(policyText()), epoch: 7, nextVersion: 2, rollout: 'none' };
    expect(tuner.observe(tuned, INITIAL_TUNING, 5_000)).toBeUndefined();
    await clock.advanceBy(1_000);
    for (let i = 0; i < 100; i += 1) {
      const request = routable({ requestId: `r${i}`, signals: { activationBytes: 1_000 * (i + 1) } });
      await produce(topics.fixed('features'), `r${i}`, codecs.for('RoutableRequest').encode(request));
    }
    await produce(topics.fixed('latency-metrics'), 'w', codecs.for('WorkerWindow').encode(window(1)));
    await produce(topics.fixed('pool-status'), 'w', codecs.for('PoolStatus').encode(status(0.5)));
    await clock.advanceBy(179_000);
    const observation = tuner.observe(tuned, INITIAL_TUNING, 185_000);
    expect(observation).toMatchObject({
      atMs: 185_000,
      version: 1,
      values: { 'hbm-floor': 65_536 },
      nextVersion: 2,
      rollout: 'none',
      domains: { 'a100/hbm': { requests: 10, utilisation: 0.5 } },
    });
    // Above 65 536 are 35 of the 100, above 81 920 are 19.
    expect(observation?.effects[0]).toMatchObject({
      direction: 'up',
      to: 81_920,
      losing: [{ domain: 'a100/hbm', share: 16 / 35 }],
      gaining: [{ domain: 'v100/l2', share: 0.16 }],
    });
    expect(tuningObservationShape(JSON.parse(JSON.stringify(observation)))).not.toBe(MISFIT);
    // Of a period without requests nothing is sampled: the sample before stands.
    await clock.advanceBy(180_000);
    expect(tuner.observe(tuned, INITIAL_TUNING, 365_000)?.effects).toEqual(observation?.effects);
    await clock.advanceBy(180_000);
    expect(tuner.observe(tuned, INITIAL_TUNING, 545_000)?.effects).toEqual(observation?.effects);
    if (observation === undefined) return;
    const events = decideTuning(INITIAL_TUNING, observation, DEFAULT_TUNING);
    expect(events.map(({ type }) => type)).toEqual(['tuning-looked']);
    expect(events.reduce(evolveTuning, INITIAL_TUNING).period).toBe(1);
  });
});

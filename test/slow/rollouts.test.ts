import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ControlEvent } from '../../src/contracts/records.ts';
import type { Stack } from '../../src/local-stack/stack.ts';
import { startStack } from '../../src/local-stack/start-stack.ts';
import { type ControlRoom, openControlRoom } from './control-events.ts';
import { type Load, moreResults, startLoad } from './load.ts';
import { eventually, type PlannedProcess, type RealPipeline, startRealPipeline } from './real-pipeline.ts';

const SCOPE = 'policy/rollouts';
const PATIENCE_MS = 120_000;
let stack: Stack;
let pipeline: RealPipeline;
let load: Load;
let room: ControlRoom;

/** Everything goes to one device; the author declares it, so that the shadow has nothing to object. */
function policy(version: number, to: string): string {
  return `
apiVersion: millrace/v1
kind: RoutingPolicy
name: rollouts
version: ${version}
expect: {changedShare: [0, 1], leaves: [all]}
tree:
  - {id: all, to: ${to}}
rollout: {shadow: 3s, canary: {percent: 20, dwell: 60s}, ramp: [50], unit: requestId}
`;
}
const GOOD = '{accelerator: gpu-a100, kernel: dense, memory: hbm}';
const SLOW = '{accelerator: gpu-v100, kernel: dense, memory: hbm}';
const LACKING = '{accelerator: fpga, kernel: sparse, memory: host}';

function worker(pool: string, environment: Record<string, string> = {}): PlannedProcess {
  return {
    name: pool,
    service: 'accelerator-worker',
    environment: {
      MILLRACE_WORKER_NAME: pool,
      MILLRACE_WORKER_POOL: pool,
      MILLRACE_WORKER_SLOTS: '0,1',
      MILLRACE_WORKER_BACKEND: 'simulated',
      ...environment,
    },
  };
}

beforeAll(async () => {
  stack = await startStack();
  const builtIn = join(mkdtempSync(join(tmpdir(), 'millrace-rollouts-')), 'policy.yaml');
  writeFileSync(builtIn, policy(1, GOOD));
  pipeline = await startRealPipeline(stack.environment, {
    environment: {
      MILLRACE_FLEET: 'test/slow/rollouts/fleet.yaml',
      MILLRACE_POLICY: builtIn,
      MILLRACE_SLOTS_PER_POOL: '2',
      MILLRACE_CONTROLLER_ACCEPT_UNSIGNED: 'true',
      MILLRACE_CONTROLLER_AUTO_PROMOTE: 'true',
      MILLRACE_CONTROLLER_LOOK_MS: '2000',
      MILLRACE_CONTROLLER_SHADOW_REQUESTS_MIN: '200',
    },
    processes: [
      { name: 'controller', service: 'policy-controller' },
      { name: 'extractor', service: 'feature-extractor' },
      { name: 'router-1', service: 'request-router' },
      { name: 'router-2', service: 'request-router' },
      worker('good'),
      // half a millisecond becomes a tenth of a second: more than five times the way through Kafka
      worker('slow', { MILLRACE_WORKER_SIMULATED_SLOWDOWN: '150' }),
      worker('lacking'),
    ],
  });
  room = await openControlRoom(pipeline.client, SCOPE);
  load = await startLoad(pipeline.client);
  await moreResults(load.ledger, 30);
});

afterAll(async () => {
  await load?.end();
  await pipeline?.close();
  await stack?.stop();
});

function told(story: readonly ControlEvent[]): string {
  return story.map(({ type, evidence }) => `${type} ${evidence}`).join('\n');
}

/** Rolls a version out until it ends by itself; answers what the log tells of it. */
async function rollOut(version: number, to: string): Promise<ControlEvent[]> {
  await room.send('PUBLISH_POLICY', policy(version, to));
  const begin = room.events.length;
  await room.send('START', JSON.stringify({ version }));
  const story = (): ControlEvent[] => room.events.slice(begin);
  const isOver = ({ type, evidence }: ControlEvent): boolean =>
    type === 'rollout-rolled-back' ||
    type === 'rollout-aborted' ||
    (type === 'rollout-advanced' && (JSON.parse(evidence) as { to: unknown }).to === 'live');
  await eventually(() => story().some(isOver), `the rollout of version ${version} ends`, PATIENCE_MS).catch(
    (error: unknown) => {
      throw new Error(`${String(error)}; the log: ${told(story())}`);
    },
  );
  return story();
}

/** Seconds from the beginning of the canary to the end of the story. */
function canarySeconds(story: readonly ControlEvent[]): number {
  const begun = story.find(({ type }) => type === 'rollout-advanced');
  const ended = story.at(-1);
  return ((ended?.occurredAt ?? Number.NaN) - (begun?.occurredAt ?? Number.NaN)) / 1_000;
}

it('row 16: a canary that is five times slower is rolled back by itself, and nobody gets an error', {
  timeout: 400_000,
}, async () => {
  await room.send('PUBLISH_POLICY', policy(1, GOOD));
  const story = await rollOut(2, SLOW);
  // a guardrail may hold it before the statistics are sure
  const types = story.map(({ type }) => type).filter((type) => !/looked|held|resumed/.test(type));
  expect(types).toEqual(['rollout-started', 'rollout-advanced', 'rollout-rolled-back']);
  const rolledBack = JSON.parse(story.at(-1)?.evidence ?? '{}') as { reason: string };
  expect(rolledBack.reason).toMatch(/over p\d\d/);
  console.info(
    `row 16: rolled back ${canarySeconds(story).toFixed(1)} s after the canary began: ${rolledBack.reason}`,
  );
  const { outcomes } = load.ledger.summary();
  expect({ ...outcomes, scored: 0 }).toEqual({
    scored: 0,
    degraded: 0,
    expired: 0,
    rejected: 0,
    deadLettered: 0,
  });
});

it('row 17: a canary with errors while the control has none is rolled back by itself', {
  timeout: 400_000,
}, async () => {
  const story = await rollOut(3, LACKING);
  const rolledBack = JSON.parse(story.at(-1)?.evidence ?? '{}') as { reason: string };
  expect(rolledBack.reason).toMatch(/errors/);
  console.info(
    `row 17: rolled back ${canarySeconds(story).toFixed(1)} s after the canary began: ${rolledBack.reason}`,
  );
});

it('row 22: a rollback leaves the candidate nothing: whatever is decided from then on is the stable policy’s', {
  timeout: 120_000,
}, async () => {
  const before = load.ledger.summary().outcomes.degraded;
  await moreResults(load.ledger, 300);
  expect(load.ledger.summary().outcomes.degraded - before).toBeLessThanOrEqual(5);
  const after = load.ledger.summary().outcomes.degraded;
  await moreResults(load.ledger, 300);
  expect(load.ledger.summary().outcomes.degraded).toBe(after);
});

/** Publishes and starts a version, waits until its shadow is held for this reason (a busy machine may give others too), and takes it back. */
async function expectHeldInShadow(version: number, text: string, code: string): Promise<void> {
  await room.send('PUBLISH_POLICY', text);
  const begin = room.events.length;
  await room.send('START', JSON.stringify({ version }));
  const codes = (): string[] =>
    room.events
      .slice(begin)
      .filter(({ type }) => type === 'rollout-held')
      .flatMap(({ evidence }) => (JSON.parse(evidence) as { reasons: { code: string }[] }).reasons)
      .map((reason) => reason.code);
  await eventually(
    () => codes().includes(code),
    `the shadow of version ${version} is held for ${code}`,
    PATIENCE_MS,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}; the log: ${told(room.events.slice(begin))}`);
  });
  expect(room.events.slice(begin).map(({ type }) => type)).not.toContain('rollout-advanced');
  await room.send('ABORT', JSON.stringify({ reason: 'seen' }));
}

it('a shadow is held for what it would do, each with its own reason, and decides nothing', {
  timeout: 600_000,
}, async () => {
  const pools = new Set<string>();
  const { bus, codecs, topics } = pipeline.client;
  const results = await bus.read(
    { topics: [topics.fixed('scored-results')], startAt: 'latest' },
    (records) => {
      for (const { value } of records) {
        const decoded = codecs.for('ScoredResult').decode(value);
        if (decoded.status === 'ok') pools.add(decoded.value.target?.pool ?? 'none');
      }
    },
  );
  const undeclared = policy(4, SLOW).replace(/^expect.*\n/m, '');
  await expectHeldInShadow(4, undeclared, 'latency-apart');
  // the device is known by now to be slow
  await expectHeldInShadow(5, policy(5, SLOW), 'projected-utilisation');
  await results.close();
  expect([...pools]).toEqual(['good']);
});

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { schemaOf } from '../../src/contracts/headers.ts';
import type { ControlEvent } from '../../src/contracts/records.ts';
import type { Stack } from '../../src/local-stack/stack.ts';
import { startStack } from '../../src/local-stack/start-stack.ts';
import { type ControlRoom, openControlRoom } from './control-events.ts';
import { type Load, moreResults, startLoad } from './load.ts';
import { type PrometheusServer, startPrometheus } from './prometheus/server.ts';
import { eventually, type PlannedProcess, type RealPipeline, startRealPipeline } from './real-pipeline.ts';
import { costlyTree } from './rollouts/costly-policy.ts';

const SCOPE = 'policy/rollouts';
const PATIENCE_MS = 120_000;
let stack: Stack;
let pipeline: RealPipeline;
let load: Load;
let room: ControlRoom;
let prometheus: PrometheusServer;

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
  [stack, prometheus] = await Promise.all([startStack(), startPrometheus()]);
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
      MILLRACE_CONTROLLER_PROMETHEUS_URL: prometheus.url,
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
  await prometheus?.close();
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
      for (const { value, headers } of records) {
        const decoded = codecs.for('ScoredResult').decode(value, schemaOf(headers));
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

it('a candidate whose decisions cost too much is held for that, and the live policy decides as before', {
  timeout: 600_000,
}, async () => {
  const decided = new Map<string, number>();
  const { bus, codecs, topics } = pipeline.client;
  const results = await bus.read(
    { topics: [topics.fixed('scored-results')], startAt: 'latest' },
    (records) => {
      for (const { value, headers } of records) {
        const decoded = codecs.for('ScoredResult').decode(value, schemaOf(headers));
        if (decoded.status !== 'ok') continue;
        const { outcome, policy: by, target } = decoded.value;
        const what = `${outcome} by ${by?.version} in ${by?.leaf} on ${target?.pool}`;
        decided.set(what, (decided.get(what) ?? 0) + 1);
      }
    },
  );
  const costly = policy(6, GOOD)
    .replace(/^tree:\n.*\n/m, `signals: {candidateCount: int}\ntree:\n${costlyTree(GOOD)}\n`)
    .replace('expect: {changedShare: [0, 1]', 'expect: {changedShare: [0, 0]');
  await expectHeldInShadow(6, costly, 'routing-cost');
  await moreResults(load.ledger, 100);
  await results.close();
  expect([...decided.keys()]).toEqual(['SCORED by 1 in all on good']);
});

/** `millrace <args>` as a process of its own, against this installation. */
async function millrace(...args: readonly string[]): Promise<{ stdout: string; code: number }> {
  const environment = {
    ...stack.environment,
    PATH: process.env['PATH'],
    MILLRACE_PREFIX: pipeline.settings.prefix,
    MILLRACE_FLEET: pipeline.settings.fleet,
  };
  const options = { env: environment, timeout: 120_000, maxBuffer: 16 * 2 ** 20 };
  return promisify(execFile)(process.execPath, ['bin/millrace.js', ...args], options).then(
    ({ stdout }) => ({ stdout, code: 0 }),
    (error: { stdout: string; code: number }) => {
      if (typeof error.code !== 'number') throw error;
      return { stdout: error.stdout, code: error.code };
    },
  );
}

interface Captured {
  signals: { candidateCount: number };
  leaf: string;
}

it('policy diff of a corpus that capture took off the live topics says what would change, request by request', {
  timeout: 400_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-corpus-'));
  const corpus = join(folder, 'requests.jsonl');
  const captured = await millrace('capture', '--out', corpus, '--max', '300', '--duration', '2m', '--json');
  expect(JSON.parse(captured.stdout)).toMatchObject({
    requests: 300,
    decided: 300,
    undecided: 0,
    leaves: { all: 300 },
    unreadable: 0,
  });
  const requests = readFileSync(corpus, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Captured);
  expect(requests).toHaveLength(300);
  const counts = requests.map(({ signals }) => signals.candidateCount).sort((a, b) => a - b);
  const middle = counts[150] ?? Number.NaN;
  const moving = requests.filter(({ signals }) => signals.candidateCount > middle).length;
  expect(moving).toBeGreaterThan(0);
  const tree = `signals: {candidateCount: int}
tree:
  - {id: long, when: candidateCount > ${middle}, to: ${SLOW}}
  - {id: all, to: ${GOOD}}
`;
  const next = (low: number, high: number): string =>
    policy(7, GOOD)
      .replace(/^tree:\n.*\n/m, tree)
      .replace(/^expect.*$/m, `expect: {changedShare: [${low}, ${high}], leaves: [long]}`);
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const live = file('live.yaml', policy(1, GOOD));
  const diffOf = async (text: string) => {
    const { stdout, code } = await millrace(
      'policy',
      'diff',
      live,
      file('next.yaml', text),
      '--corpus',
      corpus,
      '--json',
    );
    return { code, diff: JSON.parse(stdout) as Record<string, unknown> };
  };
  const share = moving / 300;
  const expected = await diffOf(next(share - 0.001, share + 0.001));
  expect(expected).toMatchObject({
    code: 0,
    diff: { requests: 300, changed: moving, changedLeaves: { long: moving }, unexpected: [] },
  });
  const contradicted = await diffOf(next(0, share / 2));
  expect(contradicted.code).toBe(1);
  expect(contradicted.diff['unexpected']).toHaveLength(1);
  // What is live decided each of them as the diff says that it does.
  expect(new Set(requests.map(({ leaf }) => leaf))).toEqual(new Set(['all']));
});

it('a policy is held for a query of its guardrails that is out of bounds, and for a Prometheus that is away', {
  timeout: 400_000,
}, async () => {
  const guarded = (version: number, query: string): string =>
    policy(version, GOOD).replace(
      'unit: requestId',
      `unit: requestId, guardrails: {queries: [{name: errors, query: '${query}', max: 0.5}]}`,
    );
  await expectHeldInShadow(8, guarded(8, 'vector(0.75)'), 'external-guardrail');
  await prometheus.close();
  await expectHeldInShadow(9, guarded(9, 'vector(0)'), 'external-no-data');
});

it('every decision of all that can be derived again from the log', { timeout: 120_000 }, async () => {
  const { stdout, code } = await millrace('control', 'replay', '--json');
  expect({ code, ...(JSON.parse(stdout) as object) }).toMatchObject({ code: 0, disagreements: [] });
});

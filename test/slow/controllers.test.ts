import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ControlEvent, ScoredResult } from '../../src/contracts/records.ts';
import { inForce } from '../../src/core/control/fence.ts';
import type { Stack } from '../../src/local-stack/stack.ts';
import { startStack } from '../../src/local-stack/start-stack.ts';
import { type ControlRoom, openControlRoom } from './control-events.ts';
import { expectAllScored, type Load, moreResults, startLoad } from './load.ts';
import { eventually, type PlannedProcess, type RealPipeline, startRealPipeline } from './real-pipeline.ts';

/**
 * A canary in force, two controllers, two routers, under load; then Redis comes up empty, the leader is paused and comes back, both controllers
 * are killed, and a person aborts. Each test goes on where the one before it ended.
 */

const SCOPE = 'policy/controllers';
const LEASE_MS = 8_000;
const PATIENCE_MS = 120_000;
const RESULTS = 60;

/** Both versions send everything to one device: nothing but a person, or silence, ends the canary. */
function policy(version: number): string {
  return `
apiVersion: millrace/v1
kind: RoutingPolicy
name: controllers
version: ${version}
expect: {changedShare: [0, 1], leaves: [all]}
tree:
  - {id: all, to: {accelerator: gpu-a100, kernel: dense, memory: hbm}}
rollout: {shadow: 2s, canary: {percent: 40, dwell: 1h}, ramp: [60], unit: requestId}
`;
}

const WORKER: PlannedProcess = {
  name: 'good',
  service: 'accelerator-worker',
  environment: {
    MILLRACE_WORKER_NAME: 'good',
    MILLRACE_WORKER_POOL: 'good',
    MILLRACE_WORKER_SLOTS: '0,1',
    MILLRACE_WORKER_BACKEND: 'simulated',
  },
};

let stack: Stack;
let pipeline: RealPipeline;
let load: Load;
let room: ControlRoom;
const arms: string[] = [];

/** The arms of the next results. */
async function nextArms(count = RESULTS): Promise<string[]> {
  const from = arms.length;
  await eventually(() => arms.length >= from + count, `${count} more results`, PATIENCE_MS);
  return [...new Set(arms.slice(from))].sort();
}

async function untilArms(wanted: readonly string[], what: string): Promise<void> {
  await eventually(async () => (await nextArms()).join() === wanted.join(), what, PATIENCE_MS);
}

/** Of this installation. */
async function storedKeys(): Promise<string[]> {
  const redis = new Redis(stack.redisUrl);
  try {
    return (await redis.keys(`*${pipeline.settings.prefix}*`)).sort();
  } finally {
    redis.disconnect();
  }
}

const leaderships = (): ControlEvent[] => room.events.filter(({ type }) => type === 'leadership-taken');
const leader = (): string => leaderships().at(-1)?.actor ?? '';

async function readArms(): Promise<void> {
  const { bus, codecs, topics } = pipeline.client;
  const codec = codecs.for('ScoredResult');
  const take = ({ policy: decided }: ScoredResult): number => arms.push(decided?.arm ?? '');
  await bus.read({ topics: [topics.fixed('scored-results')], startAt: 'latest' }, (records) => {
    for (const { value } of records) {
      const decoded = value === null ? undefined : codec.decode(value);
      if (decoded?.status === 'ok') take(decoded.value);
      else if (decoded?.status === 'schema-unknown') void codecs.learn(decoded);
    }
  });
}

beforeAll(async () => {
  stack = await startStack();
  const builtIn = join(mkdtempSync(join(tmpdir(), 'millrace-controllers-')), 'policy.yaml');
  writeFileSync(builtIn, policy(1));
  pipeline = await startRealPipeline(stack.environment, {
    environment: {
      MILLRACE_FLEET: 'test/slow/rollouts/fleet.yaml',
      MILLRACE_POLICY: builtIn,
      MILLRACE_SLOTS_PER_POOL: '2',
      MILLRACE_CONTROLLER_ACCEPT_UNSIGNED: 'true',
      MILLRACE_CONTROLLER_AUTO_PROMOTE: 'true',
      MILLRACE_CONTROLLER_LOOK_MS: '1000',
      MILLRACE_CONTROLLER_LEASE_MS: String(LEASE_MS),
      MILLRACE_CONTROLLER_SHADOW_REQUESTS_MIN: '60',
    },
    processes: [
      { name: 'controller-1', service: 'policy-controller' },
      { name: 'controller-2', service: 'policy-controller' },
      { name: 'extractor', service: 'feature-extractor' },
      { name: 'router-1', service: 'request-router' },
      { name: 'router-2', service: 'request-router' },
      WORKER,
    ],
  });
  // The first of them leads from here on, and the second stands by.
  await pipeline.stop('controller-2');
  room = await openControlRoom(pipeline.client, SCOPE);
  // The first of its name is live at once.
  await room.send('PUBLISH_POLICY', policy(2));
  await room.send('PUBLISH_POLICY', policy(3));
  await pipeline.start('controller-2');
  await readArms();
  load = await startLoad(pipeline.client);
  await moreResults(load.ledger, 30);
  await room.send('START', JSON.stringify({ version: 3 }));
  await untilArms(['CANARY', 'STABLE'], 'the canary begins');
});

afterAll(async () => {
  await load?.end();
  await pipeline?.close();
  await stack?.stop();
});

describe('a canary in force', () => {
  it('row 7: is written into a Redis that came up empty, from the control log, by the controller itself', async () => {
    const before = await storedKeys();
    expect(before).not.toEqual([]);
    await stack.stopRedis();
    await stack.startRedis();
    await eventually(
      async () => (await storedKeys()).join() === before.join(),
      'the store has what it had',
      PATIENCE_MS,
    );
    // A router that starts now knows nothing but what the store says.
    await pipeline.kill('router-1');
    await pipeline.kill('router-2');
    await pipeline.start('router-1');
    await untilArms(['CANARY', 'STABLE'], 'the canary goes on');
    await pipeline.start('router-2');
  });

  it('row 4: is held by the second controller while the first is paused, whose return writes nothing of its term', async () => {
    const first = leader();
    pipeline.process('controller-1').kill('SIGSTOP');
    await eventually(() => leader() !== first, 'the second controller leads', PATIENCE_MS);
    await room.send('HOLD', '{"reason": "a person looks"}');
    pipeline.process('controller-1').kill('SIGCONT');
    await room.send('PUBLISH_POLICY', policy(4));
    expect(await nextArms()).toEqual(['CANARY', 'STABLE']);
    const held = room.events.filter(({ type }) => type === 'rollout-held');
    expect(held.map(({ actor, term }) => ({ actor, term }))).toEqual([
      { actor: 'test', term: leaderships().at(-1)?.term },
    ]);
    // What the first one still got into the log does not count, and answers nobody.
    const counted = new Set(inForce(room.events));
    const stale = room.events.filter((event) => !counted.has(event));
    expect(stale.map(({ commandId }) => commandId).filter((id) => id !== '')).toEqual([]);
  });

  it('row 3: is left by all routers when no controller was heard of for the lease, and taken up again', async () => {
    await pipeline.kill('controller-1');
    await pipeline.kill('controller-2');
    await untilArms(['STABLE'], 'the lease lapses');
    await pipeline.start('controller-1');
    await untilArms(['CANARY', 'STABLE'], 'a controller is back');
  });

  it('ends with ABORT under load, and every decision can be derived again from the log', async () => {
    await room.send('ABORT', '{"reason": "enough"}');
    await untilArms(['STABLE'], 'the stable policy decides everything');
    const environment = { ...process.env, ...stack.environment, MILLRACE_PREFIX: pipeline.settings.prefix };
    const args = ['bin/millrace.js', 'control', 'replay', '--json'];
    const { stdout } = await promisify(execFile)(process.execPath, args, { env: environment });
    expect(JSON.parse(stdout)).toMatchObject({ disagreements: [] });
  });

  it('cost no request anything in all this', async () => {
    expectAllScored(await load.end());
  });
});

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CommandType } from '../../src/contracts/records.ts';
import type { Stack } from '../../src/local-stack/stack.ts';
import { startStack } from '../../src/local-stack/start-stack.ts';
import { type ControlRoom, openControlRoom } from './control-events.ts';
import { expectAllScored, type Load, moreResults, startLoad } from './load.ts';
import { type PlannedProcess, type RealPipeline, startRealPipeline } from './real-pipeline.ts';

/** A fleet of routers through a promotion, an abort and a rollback: each follows, connected or not, and no request is lost by it. */

const ROUTERS = 20;
/** Of all at once, on two cores, the last would count as one that never becomes ready; of few at a time each few are a rebalance more. */
const STARTED_TOGETHER = 10;
/** That each follows at all, however busy the machine is. How soon where nothing else runs is bench/abort.ts's to say. */
const FOLLOWS_MS = 60_000;
/** Twenty pages of metrics at every turn would be most of what the machine does. */
const ASKED_EVERY_MS = 250;
const SCOPE = 'policy/twenty-routers';
let stack: Stack;
let pipeline: RealPipeline;
let room: ControlRoom;
let load: Load;
let redis: Redis;

/** Each version tells itself by its leaf; all of them send to the same pool. */
function policy(version: number): string {
  return `
apiVersion: millrace/v1
kind: RoutingPolicy
name: twenty-routers
version: ${version}
expect: {changedShare: [0, 1], leaves: [v${version}]}
tree:
  - {id: v${version}, to: {accelerator: gpu-a100, kernel: dense, memory: hbm}}
rollout: {shadow: 1s, canary: {percent: 20, dwell: 1s}, ramp: [50], unit: requestId}
`;
}

const routers: readonly PlannedProcess[] = Array.from({ length: ROUTERS }, (_, index) => ({
  name: `router-${index + 1}`,
  service: 'request-router',
}));

beforeAll(async () => {
  stack = await startStack();
  const builtIn = join(mkdtempSync(join(tmpdir(), 'millrace-twenty-routers-')), 'policy.yaml');
  writeFileSync(builtIn, policy(1));
  pipeline = await startRealPipeline(stack.environment, {
    environment: {
      MILLRACE_FLEET: 'test/slow/rollouts/fleet.yaml',
      MILLRACE_POLICY: builtIn,
      MILLRACE_KAFKA_PARTITIONS: String(ROUTERS),
      MILLRACE_SLOTS_PER_POOL: '2',
      MILLRACE_CONTROLLER_ACCEPT_UNSIGNED: 'true',
    },
    processes: [
      { name: 'controller', service: 'policy-controller' },
      { name: 'extractor-1', service: 'feature-extractor' },
      { name: 'extractor-2', service: 'feature-extractor' },
      {
        name: 'worker',
        service: 'accelerator-worker',
        environment: {
          MILLRACE_WORKER_POOL: 'good',
          MILLRACE_WORKER_SLOTS: '0,1',
          MILLRACE_WORKER_BACKEND: 'simulated',
        },
      },
    ],
    later: routers,
  });
  for (let first = 0; first < ROUTERS; first += STARTED_TOGETHER) {
    const together = routers.slice(first, first + STARTED_TOGETHER);
    await Promise.all(together.map(({ name }) => pipeline.start(name)));
  }
  redis = new Redis(stack.redisUrl);
  room = await openControlRoom(pipeline.client, SCOPE);
  load = await startLoad(pipeline.client, 60_000, 100);
  await moreResults(load.ledger, 100);
});

afterAll(async () => {
  await load?.end();
  redis?.disconnect();
  await pipeline?.close();
  await stack?.stop();
});

async function epochOf(router: string): Promise<number> {
  const metrics = await (await fetch(`${pipeline.process(router).url}/metrics`)).text();
  return Number(/^millrace_policy_epoch(?:\{.*\})? (\d+)$/m.exec(metrics)?.[1]);
}

/** Waits until each router runs what was decided at this epoch; one that does is not asked again. */
async function allFollow(epoch: number, what: string): Promise<void> {
  let late = routers.map(({ name }) => name);
  const untilMs = Date.now() + FOLLOWS_MS;
  while (late.length > 0) {
    if (Date.now() > untilMs) throw new Error(`${late.join(', ')} did not follow ${what}, epoch ${epoch}`);
    await new Promise((resolve) => setTimeout(resolve, ASKED_EVERY_MS));
    const epochs = await Promise.all(late.map(async (name) => [name, await epochOf(name)] as const));
    late = epochs.filter(([, at]) => at !== epoch).map(([name]) => name);
  }
}

/** Ends every connection to Redis but this one, so that the hint of what comes next reaches nobody. */
async function cutAll(): Promise<number> {
  const cut = await Promise.all(
    ['normal', 'pubsub'].map((type) => redis.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes')),
  );
  return cut.reduce<number>((sum, count) => sum + Number(count), 0);
}

/** Sends a command, and waits until each router follows what the controller made of it. */
async function decided(type: CommandType, body: object, expected: string): Promise<void> {
  const begin = room.events.length;
  await room.send(type, JSON.stringify(body));
  const sentMs = Date.now();
  const event = room.events.slice(begin).find((each) => each.type === expected);
  if (event === undefined) throw new Error(`${type} made no ${expected}`);
  await allFollow(event.epoch, type);
  console.info(`${type}, ${expected}: ${ROUTERS} routers followed within ${Date.now() - sentMs} ms`);
}

/** Publishes a version, and takes it as far as its canary. */
async function toCanary(version: number): Promise<void> {
  await room.send('PUBLISH_POLICY', policy(version));
  await decided('START', { version }, 'rollout-started');
  await decided('PROMOTE', {}, 'rollout-advanced');
}

it('20 routers follow a promotion, an abort and a rollback while their connections to Redis are cut, and nobody gets an error', {
  timeout: 300_000,
}, async () => {
  await room.send('PUBLISH_POLICY', policy(1));
  await toCanary(2);
  await moreResults(load.ledger, 200);
  await decided('PROMOTE', { to: 'live' }, 'rollout-advanced');

  await toCanary(3);
  await moreResults(load.ledger, 200);
  // two connections of each router, and those of the controller
  expect(await cutAll()).toBeGreaterThan(2 * ROUTERS);
  await decided('ABORT', { reason: 'a test' }, 'rollout-aborted');

  expect(await cutAll()).toBeGreaterThan(2 * ROUTERS);
  await decided('ROLL_BACK', { version: 1 }, 'policy-rolled-back');
  await moreResults(load.ledger, 200);
  expectAllScored(await load.end());
});

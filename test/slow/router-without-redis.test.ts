import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Stack } from '../../src/local-stack/stack.ts';
import { startStack } from '../../src/local-stack/start-stack.ts';
import { type FaultyWay, faultyWay } from '../conformance/redis.fixture.ts';
import { type ControlRoom, openControlRoom } from './control-events.ts';
import { expectAllScored, type Load, moreResults, startLoad } from './load.ts';
import { eventually, type RealPipeline, startRealPipeline } from './real-pipeline.ts';

/**
 * A router as a process whose way to Redis loses hints, falls silent, and is shut while it starts; all others reach Redis. Each test goes on where the
 * one before it ended, under load, and no request is lost by any of it. How soon is told here, and asserted where nothing else runs: bench/distribution.ts.
 */

const SCOPE = 'policy/lonely';
/** That it follows at all, however busy the machine is. */
const FOLLOWS_MS = 60_000;
let stack: Stack;
let way: FaultyWay;
let redis: Redis;
let pipeline: RealPipeline;
let room: ControlRoom;
let load: Load;

function policy(version: number): string {
  return `
apiVersion: millrace/v1
kind: RoutingPolicy
name: lonely
version: ${version}
expect: {changedShare: [0, 1], leaves: [v${version}]}
tree:
  - {id: v${version}, to: {accelerator: cpu, kernel: dense, memory: host}}
rollout: {shadow: 1s, canary: {percent: 50, dwell: 1s}, ramp: [], unit: requestId}
`;
}

beforeAll(async () => {
  stack = await startStack();
  way = await faultyWay(stack.redisUrl);
  redis = new Redis(stack.redisUrl);
  const folder = mkdtempSync(join(tmpdir(), 'millrace-lonely-'));
  const builtIn = join(folder, 'policy.yaml');
  writeFileSync(builtIn, policy(1));
  pipeline = await startRealPipeline(stack.environment, {
    environment: {
      MILLRACE_POLICY: builtIn,
      MILLRACE_CONTROLLER_ACCEPT_UNSIGNED: 'true',
      MILLRACE_SLOTS_PER_POOL: '2',
    },
    processes: [
      { name: 'controller', service: 'policy-controller' },
      { name: 'extractor', service: 'feature-extractor' },
      {
        name: 'router',
        service: 'request-router',
        environment: {
          MILLRACE_REDIS_URL: way.url,
          MILLRACE_ROUTER_NAME: 'lonely',
          MILLRACE_ROUTER_STATE_FOLDER: join(folder, 'state'),
        },
      },
      {
        name: 'worker',
        service: 'accelerator-worker',
        environment: { MILLRACE_WORKER_POOL: 'cpu', MILLRACE_WORKER_SLOTS: '0,1' },
      },
    ],
  });
  room = await openControlRoom(pipeline.client, SCOPE);
  load = await startLoad(pipeline.client);
  await moreResults(load.ledger, 50);
  await room.send('PUBLISH_POLICY', policy(1));
});

afterAll(async () => {
  await load?.end();
  redis?.disconnect();
  await pipeline?.close();
  await way?.close();
  await stack?.stop();
});

async function epochOfRouter(): Promise<number> {
  const metrics = await (await fetch(`${pipeline.process('router').url}/metrics`)).text();
  return Number(/^millrace_policy_epoch(?:\{.*\})? (\d+)$/m.exec(metrics)?.[1]);
}

/** @returns ms */
async function followed(epoch: number): Promise<number> {
  const startedMs = Date.now();
  await eventually(
    async () => (await epochOfRouter()) === epoch,
    `the router is at epoch ${epoch}`,
    FOLLOWS_MS,
  );
  return Date.now() - startedMs;
}

/** Takes a version to live. @returns its epoch */
async function live(version: number): Promise<number> {
  await room.send('PUBLISH_POLICY', policy(version));
  await room.send('START', JSON.stringify({ version }));
  await room.send('PROMOTE', JSON.stringify({ to: 'live' }));
  return room.events.at(-1)?.epoch ?? expect.unreachable('nothing was decided');
}

/** When the router's log says that the policy on its disk decides, ms. */
function lastKnownGoodAppliedMs(): number {
  const lines = readFileSync(join(pipeline.logFolder, 'router.log'), 'utf8').trim().split('\n');
  const entries = lines.map((line) => JSON.parse(line) as { msg: string; source?: string; time: string });
  const applied = entries.findLast(
    ({ msg, source }) => msg === 'policy applied' && source === 'last-known-good',
  );
  return Date.parse(applied?.time ?? '');
}

describe('a router', () => {
  it('row 5: follows though its hints are lost', async () => {
    const subscribers = redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub', 'SKIPME', 'yes');
    const epoch = await live(2);
    expect(Number(await subscribers)).toBeGreaterThan(0);
    console.info(`row 5: followed after ${await followed(epoch)} ms`);
    await moreResults(load.ledger, 50);
  });

  it('row 9: finds a connection that is half open, and follows by another', async () => {
    way.drop();
    const epoch = await live(3);
    expect(await epochOfRouter()).toBeLessThan(epoch);
    way.pass();
    console.info(`row 9: followed after ${await followed(epoch)} ms`);
    await moreResults(load.ledger, 50);
  });

  it('row 10: starts with its last-known-good while Redis is away', async () => {
    const epoch = await epochOfRouter();
    await way.shut();
    await pipeline.kill('router');
    const startedMs = Date.now();
    await pipeline.start('router');
    const readyMs = Date.now() - startedMs;
    expect(await epochOfRouter()).toBe(epoch);
    const decidedMs = lastKnownGoodAppliedMs() - startedMs;
    expect(decidedMs).toBeGreaterThan(0);
    console.info(
      `row 10: decided by it ${decidedMs} ms after its process was started, ready after ${readyMs} ms`,
    );
    await moreResults(load.ledger, 50);
    await way.open();
    const next = await live(4);
    console.info(`row 10: followed again after ${await followed(next)} ms`);
    expectAllScored(await load.end());
  });
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type SilentTelemetry, silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { redisControlStore } from '../../src/adapters/redis/control-store.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { fileLastKnownGood } from '../../src/adapters/system/last-known-good.ts';
import { REFERENCE_FLEET } from '../../src/core/policy/fleet.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import type { CanaryPointer, ControlStore, PolicyPointer } from '../../src/ports/control-store.ts';
import { PolicySource } from '../../src/stages/request-router/policy-source.ts';
import { compileChecked, digestOf } from '../../src/wiring/policy-files.ts';
import { eventually } from '../conformance/control-store.suite.ts';
import { type FaultyWay, faultyWay, redisUrl, uniquePrefix } from '../conformance/redis.fixture.ts';

const SCOPE = 'policy/feed';
const clock = systemClock();

function textOf(version: number): Buffer {
  return Buffer.from(`
apiVersion: millrace/v1
kind: RoutingPolicy
name: feed
version: ${version}
signals: {sequenceLength: int}
tree:
  - {id: long, when: sequenceLength > ${256 + version}, to: {accelerator: fpga, kernel: attention}}
  - {id: rest, to: {accelerator: gpu-a100, kernel: dense}}
`);
}

const refOf = (version: number) => ({ digest: digestOf(textOf(version)), name: 'feed', version });

function canaryOf(version: number, beat = 1): CanaryPointer {
  const policy = refOf(version);
  return { policy, mode: 'canary', percent: 5, salt: 's', unit: 'bucketKey', leaseMs: 60_000, beat };
}

/** A router's policy source, and what decides by it: versions of the stable policy and, where it is obeyed, of the canary. */
interface Follower {
  source: PolicySource;
  store: ControlStore;
  telemetry: SilentTelemetry;
  inForce: string;
}

describe('policies on their way to routers, on a real Redis', () => {
  let way: FaultyWay;
  let prefix: string;
  let stateFolder: string;
  /** Does not go through the faulty way. */
  let controller: ControlStore;
  const followers: Follower[] = [];

  const open = (url: string, telemetry: SilentTelemetry): ControlStore =>
    redisControlStore({ url, prefix, clock, telemetry });

  /** A router that reaches Redis through the faulty way; all of them keep their state in one folder. */
  const startRouter = async (): Promise<Follower> => {
    const telemetry = silentTelemetry();
    const store = open(way.url, telemetry);
    const source = new PolicySource({
      store,
      clock,
      random: seededRandom(followers.length).stream('poll'),
      telemetry,
      scope: SCOPE,
      member: `router-${followers.length}`,
      lastKnownGood: fileLastKnownGood({ folder: stateFolder, logger: telemetry.logger }),
      digest: digestOf,
      compile: (bytes) => compileChecked(bytes, REFERENCE_FLEET),
      apply: (stable, canary) => {
        const beside = canary === undefined ? '' : `, ${canary.percent} % ${canary.policy.ref.version}`;
        follower.inForce = `${stable.ref.version}${beside}`;
      },
    });
    const follower: Follower = { source, store, telemetry, inForce: 'built-in' };
    followers.push(follower);
    await source.start();
    return follower;
  };

  const stop = async ({ source, store }: Follower): Promise<void> => {
    await source.close();
    await store.close();
  };

  const publish = async (epoch: number, version: number, canary?: CanaryPointer): Promise<void> => {
    for (const each of [version, canary?.policy.version ?? version])
      await controller.putDocument(digestOf(textOf(each)), textOf(each));
    const pointer: PolicyPointer = { epoch, term: 1, stable: refOf(version), canary };
    expect(await controller.writePointer(SCOPE, pointer)).toEqual({ status: 'applied' });
  };

  const follows = (follower: Follower, inForce: string): Promise<void> =>
    eventually(`${inForce} is in force`, () => follower.inForce === inForce);

  beforeEach(async () => {
    way = await faultyWay(redisUrl());
    prefix = uniquePrefix();
    stateFolder = mkdtempSync(join(tmpdir(), 'millrace-state-'));
    controller = open(redisUrl(), silentTelemetry());
  });
  afterEach(async () => {
    await Promise.all(followers.splice(0).map(stop));
    await controller.close();
    await way.close();
    rmSync(stateFolder, { recursive: true, force: true });
  });

  it('a canary comes, is renewed, widens, and is aborted', async () => {
    await publish(1, 1);
    const router = await startRouter();
    expect(router.inForce).toBe('1');
    await publish(2, 1, canaryOf(2));
    await follows(router, '1, 5 % 2');
    await publish(2, 1, canaryOf(2, 2));
    await publish(3, 1, { ...canaryOf(2), percent: 50 });
    await follows(router, '1, 50 % 2');
    await publish(4, 1);
    await follows(router, '1');
    await eventually('the router acknowledged the abort', async () => {
      const reports = await controller.readReports(SCOPE);
      return reports.get('router-0') === JSON.stringify({ status: 'applied', epoch: 4 });
    });
  });

  it('half-open: found and left for a new connection, while the policy in force stays', async () => {
    await publish(1, 1);
    const router = await startRouter();
    way.drop();
    await publish(2, 2);
    // Whatever is connected now stays silent for ever: only who finds that out gets through again.
    way.pass();
    await follows(router, '2');
    expect(router.telemetry.logs.map(({ message }) => message)).toContain('Redis is back.');
  });

  it('cut off again and again: every change arrives, none twice', async () => {
    await publish(1, 1);
    const router = await startRouter();
    for (let epoch = 2; epoch <= 6; epoch += 1) {
      way.cut();
      await publish(epoch, epoch);
      await follows(router, `${epoch}`);
    }
  });

  it('Redis away at the start: the last-known-good decides before the start is over', async () => {
    await publish(5, 3, canaryOf(4));
    const first = await startRouter();
    await follows(first, '3');
    await first.source.close();
    await way.shut();
    const second = await startRouter();
    expect(second.inForce).toBe('3');
    await publish(6, 4);
    await way.open();
    await follows(second, '4');
  });

  it('Redis emptied: ignored, and followed again once it is seeded (launchdarkly/dotnet-server-sdk#174: a restarted Redis empties flags)', async () => {
    await publish(1, 1);
    await publish(2, 2);
    const router = await startRouter();
    const redis = new Redis(redisUrl());
    await redis.del(await redis.keys(`${prefix}:*`));
    redis.disconnect();
    // An older epoch, as of a store that came back from a backup.
    await publish(1, 1);
    await eventually('the router raised the alarm', () =>
      router.telemetry.logs.some(
        ({ fields }) => fields['reason'] === 'epoch 1 is older than epoch 2, which is in force',
      ),
    );
    expect(router.inForce).toBe('2');
    await publish(3, 3);
    await follows(router, '3');
  });
});

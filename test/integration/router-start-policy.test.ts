import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { memoryBroker } from '../../src/adapters/memory/bus.ts';
import { memorySchemaRegistry } from '../../src/adapters/memory/schema-registry.ts';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { redisControlStore } from '../../src/adapters/redis/control-store.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import type { Settings } from '../../src/config/settings.ts';
import { createCodecs } from '../../src/contracts/codec.ts';
import { recordTopics } from '../../src/contracts/topic-specs.ts';
import { topicNames } from '../../src/contracts/topics.ts';
import { createTopicDelay } from '../../src/core/latency/topic-delay.ts';
import { fleetPools } from '../../src/core/policy/fleet-pools.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import type { ControlStore } from '../../src/ports/control-store.ts';
import type { Router } from '../../src/stages/request-router/router.ts';
import type { Stage, StageDeps } from '../../src/stages/stage.ts';
import { applyTopics } from '../../src/wiring/apply-topics.ts';
import { digestOf, readFleet } from '../../src/wiring/policy-files.ts';
import { startRequestRouter } from '../../src/wiring/request-router.ts';
import { eventually } from '../conformance/control-store.suite.ts';
import { type FaultyWay, faultyWay, redisUrl, uniquePrefix } from '../conformance/redis.fixture.ts';

const NAME = 'one-pool';
const clock = systemClock();
const telemetry = silentTelemetry();

function textOf(version: number): Buffer {
  return Buffer.from(`
apiVersion: millrace/v1
kind: RoutingPolicy
name: ${NAME}
version: ${version}
tree:
  - {id: all, to: {accelerator: cpu, kernel: dense}}
`);
}

/** The router as its service starts it, with everything that it is given, but for Kafka in memory. */
describe('the policy that a router starts with', () => {
  let way: FaultyWay;
  let stateFolder: string;
  let settings: Settings;
  let deps: StageDeps;
  let controller: ControlStore;
  let prefix: string;
  const closing: (() => Promise<void>)[] = [];

  const connect = (url: string): ControlStore => {
    const store = redisControlStore({ url, prefix, clock, telemetry });
    closing.push(() => store.close());
    return store;
  };
  const publish = async (epoch: number, version: number): Promise<void> => {
    const ref = { digest: digestOf(textOf(version)), name: NAME, version };
    await controller.putDocument(ref.digest, textOf(version));
    const pointer = { epoch, term: 1, stable: ref, canary: undefined };
    expect(await controller.writePointer(`policy/${NAME}`, pointer)).toEqual({ status: 'applied' });
  };
  const start = async (): Promise<Stage & { router: Router }> => {
    const stage = await startRequestRouter(settings, deps, {
      fleet: readFleet(settings),
      store: connect(way.url),
      openModels: () => Promise.reject(new Error('the router on its own needs no models')),
    });
    if (!('router' in stage)) throw new Error('no router in the stage');
    return stage as Stage & { router: Router };
  };
  const inForce = ({ router }: { router: Router }): string =>
    `${router.policy.ref.version} ${router.policy.source}`;

  beforeEach(async () => {
    way = await faultyWay(redisUrl());
    prefix = uniquePrefix();
    stateFolder = mkdtempSync(join(tmpdir(), 'millrace-state-'));
    ({ settings } = loadSettings(
      {},
      {
        fleet: 'examples/fleets/one-pool.yaml',
        policy: 'examples/policies/one-pool.yaml',
        'router.stateFolder': stateFolder,
        'controller.acceptUnsigned': true,
      },
    ));
    controller = connect(redisUrl());
    const topics = topicNames(settings.prefix);
    const bus = memoryBroker({ clock }).connect({
      clientId: 'router',
      drainTimeoutMs: 1_000,
      sessionTimeoutMs: 10_000,
      telemetry,
    });
    closing.push(() => bus.close());
    await applyTopics(settings, bus);
    const codecs = createCodecs({ registry: memorySchemaRegistry(), clock });
    const pools = fleetPools(readFleet(settings)).map(({ pool }) => pool);
    await codecs.register(recordTopics({ topics, tenants: [], pools }));
    deps = { bus, codecs, topics, clock, random: seededRandom(1), telemetry, topicDelay: createTopicDelay() };
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
    await way.close();
    rmSync(stateFolder, { recursive: true, force: true });
  });

  it('is the built-in one, the store’s, the last-known-good, or the one before that', async () => {
    await way.shut();
    const first = await start();
    expect(inForce(first)).toMatch(/ built-in$/);
    await way.open();
    await publish(1, 7);
    await eventually('the store is followed', () => inForce(first) === '7 store');
    // By now requests may be on their way: this one is read in a thread.
    await publish(2, 8);
    await eventually('a change is followed', () => inForce(first) === '8 store');
    await first.close();

    await way.shut();
    const second = await start();
    expect(inForce(second)).toBe('8 last-known-good');
    await second.close();

    for (const file of readdirSync(stateFolder))
      if (file.endsWith('.current.json')) writeFileSync(join(stateFolder, file), 'not what was written');
    const third = await start();
    expect(inForce(third)).toBe('7 last-known-good');
    await way.open();
    await eventually('the store is followed again', () => inForce(third) === '8 store');
    await third.close();
  });
});

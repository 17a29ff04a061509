import type { MemoryBroker, MemoryConnection } from '../../../../src/adapters/memory/bus.ts';
import {
  type MemoryControlServer,
  memoryControlServer,
} from '../../../../src/adapters/memory/control-store.ts';
import { schemaOf } from '../../../../src/contracts/headers.ts';
import {
  type ControlCommand,
  type ControlEvent,
  makeControlCommand,
} from '../../../../src/contracts/records.ts';
import { topicSpecs } from '../../../../src/contracts/topic-specs.ts';
import { createTopicDelay } from '../../../../src/core/latency/topic-delay.ts';
import {
  DEFAULT_ROLLOUT,
  type MetricGuardrail,
  NO_GUARDRAILS,
} from '../../../../src/core/policy/document.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import type { PolicyPointer } from '../../../../src/ports/control-store.ts';
import type { ControllerDeps } from '../../../../src/stages/policy-controller/controller.ts';
import {
  type ControllerConfig,
  DEFAULT_ROLLOUT_CONFIG,
} from '../../../../src/stages/policy-controller/controller-config.ts';
import type { CheckedPolicy } from '../../../../src/stages/policy-controller/read-command.ts';
import { createPolicyControllerStage } from '../../../../src/stages/policy-controller/stage.ts';
import { MemoryWorld } from '../../adapters/memory/bus.fixture.ts';
import { codecs, topics } from '../records.fixture.ts';

export const SCOPE = 'policy/feed';

export const digestOf = (bytes: Uint8Array): string =>
  `digest of ${Buffer.from(bytes).toString().slice(0, 40)}`;

const LEAF: CheckedPolicy['tree'][number] = {
  kind: 'leaf',
  id: 'rest',
  when: undefined,
  path: 'tree[0]',
  to: { accelerator: 'cpu', kernel: 'dense', memory: undefined, variant: undefined },
  fallback: [],
};

export const GUARDRAIL: MetricGuardrail = {
  name: 'ctr',
  query: 'ctr',
  min: 0.01,
  max: undefined,
  forMs: 0,
  breach: 'hold',
};

/** A policy here is `name version`; `guarded` behind it gives it a guardrail to query, and `family@version` names a model version. */
export function checkPolicy(bytes: Uint8Array): CheckedPolicy {
  const [name = '', version = '', ...rest] = Buffer.from(bytes).toString().split(' ');
  if (!/^\d+$/.test(version)) throw new Error(`${name} has no version`);
  const models = new Map(
    rest
      .filter((each) => each.includes('@'))
      .map((each) => {
        const [family = '', chosen] = each.split('@');
        return [family, { baseline: chosen, enhanced: chosen }];
      }),
  );
  const guardrails = { ...NO_GUARDRAILS, queries: rest.includes('guarded') ? [GUARDRAIL] : [] };
  const rollout = { ...DEFAULT_ROLLOUT, guardrails };
  return { name, version: Number(version), models, expect: undefined, rollout, tree: [LEAF] };
}

export function publish(version: number, fields: Partial<ControlCommand> = {}): ControlCommand {
  return makeControlCommand({
    commandId: `publish-${version}`,
    scope: SCOPE,
    type: 'PUBLISH_POLICY',
    body: Buffer.from(`feed ${version}`),
    actor: 'ana',
    ...fields,
  });
}

export function rollBack(fields: Partial<ControlCommand> = {}): ControlCommand {
  return makeControlCommand({
    commandId: 'roll-back',
    scope: SCOPE,
    type: 'ROLL_BACK',
    actor: 'ana',
    ...fields,
  });
}

export function command(type: ControlCommand['type'], body = '', commandId: string = type): ControlCommand {
  return makeControlCommand({ commandId, scope: SCOPE, type, body: Buffer.from(body), actor: 'ana' });
}

/** Topics, a store, and what an operator and an auditor see of them; no controller yet. */
export interface ControlRoom {
  world: MemoryWorld;
  broker: MemoryBroker;
  server: MemoryControlServer;
  outside: MemoryConnection;
  /** The log of events, as an auditor reads it. */
  events: ControlEvent[];
  deps(bus: MemoryConnection, overrides?: Partial<ControllerDeps>): ControllerDeps;
  config: ControllerConfig;
  send(command: ControlCommand): Promise<void>;
  sendBytes(value: Buffer): Promise<void>;
  pointer(scope?: string): Promise<PolicyPointer | undefined>;
  document(text: string): Promise<string | undefined>;
  committed(): Promise<number>;
}

export async function openControlRoom(): Promise<ControlRoom> {
  const world = new MemoryWorld();
  const server = memoryControlServer({ clock: world.clock });
  const store = server.connect();
  const outside = world.connect();
  await world.settle(
    outside.admin.createTopics(
      topicSpecs({ topics, partitions: 1, replication: 1, pools: new Map(), tenants: [] }),
    ),
  );
  const events: ControlEvent[] = [];
  await world.settle(
    outside.read({ topics: [topics.fixed('control-events')], startAt: 'earliest' }, (records) => {
      for (const { value, headers } of records) {
        const decoded = codecs.for('ControlEvent').decode(value, schemaOf(headers));
        if (decoded.status === 'ok') events.push(decoded.value);
      }
    }),
  );
  const sendBytes = (value: Buffer): Promise<void> =>
    world.settle(outside.produce({ topic: topics.fixed('control'), partition: 0, key: null, value }));
  return {
    world,
    broker: world.broker,
    server,
    outside,
    events,
    config: {
      controller: 'controller-1',
      acceptUnsigned: true,
      rollout: { ...DEFAULT_ROLLOUT_CONFIG, mode: 'immediate' },
      tuning: undefined,
    },
    deps: (bus, overrides = {}) => ({
      bus,
      store: server.connect(),
      codecs,
      topics,
      clock: world.clock,
      telemetry: world.telemetry,
      digest: digestOf,
      checkPolicy,
      ...overrides,
    }),
    sendBytes,
    send: (command) => sendBytes(codecs.for('ControlCommand').encode(command)),
    pointer: (scope = SCOPE) => world.settle(store.readPointer(scope)),
    document: async (text) => {
      const bytes = await world.settle(store.readDocument(digestOf(Buffer.from(text))));
      return bytes === undefined ? undefined : Buffer.from(bytes).toString();
    },
    committed: async () => {
      const group = `${topics.prefix}.policy-controller`;
      return (await world.settle(outside.admin.committed(group, topics.fixed('control')))).get(0) ?? -1;
    },
  };
}

export interface LeadOptions {
  bus?: MemoryConnection;
  config?: Partial<ControllerConfig>;
  deps?: Partial<ControllerDeps>;
}

/** Starts a controller and lets it take the lead. */
export async function lead(room: ControlRoom, options: LeadOptions = {}) {
  const { world } = room;
  const bus = options.bus ?? world.connect();
  const stage = await world.settle(
    createPolicyControllerStage(
      { ...room.config, ...options.config, reconcileMs: 1_000 },
      {
        ...room.deps(bus, options.deps),
        random: seededRandom(1),
        topicDelay: createTopicDelay(),
        bus,
      },
    ),
  );
  await world.clock.advanceBy(50);
  return { stage, bus };
}

/** What the log of events says: type, term, epoch and command of each. */
export const told = (room: ControlRoom): string[] =>
  room.events.map(({ type, term, epoch, commandId }) => [type, term, epoch, commandId].join(' ').trim());

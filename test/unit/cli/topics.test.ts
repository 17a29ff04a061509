import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type MemoryBroker, memoryBroker } from '../../../src/adapters/memory/bus.ts';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { systemClock } from '../../../src/adapters/system/clock.ts';
import type { MessageBus, TopicConfig } from '../../../src/ports/message-bus.ts';
import { INSTALLATION, millrace } from './cli.fixture.ts';

let broker: MemoryBroker;
let admin: MessageBus;

beforeEach(() => {
  broker = memoryBroker({ clock: systemClock() });
  admin = connect();
});

afterEach(() => admin.close());

function connect(): MessageBus {
  return broker.connect({
    clientId: 'test',
    drainTimeoutMs: 1_000,
    sessionTimeoutMs: 6_000,
    telemetry: silentTelemetry(),
  });
}

function apply(
  args: readonly string[] = [],
  environment: Record<string, string> = {},
  change: (bus: MessageBus) => void = () => {},
) {
  return millrace(['topics', 'apply', ...args], {
    environment: { ...INSTALLATION, ...environment },
    openBus: async () => {
      const bus = connect();
      change(bus);
      return bus;
    },
  });
}

async function configOf(topic: string): Promise<TopicConfig | undefined> {
  return (await admin.admin.topicConfigs([topic])).get(topic);
}

const TOPICS = 14;

describe('millrace topics apply', () => {
  it('prints the plan, creates what is missing, and changes nothing when done again', async () => {
    const { out, exitCode } = await apply();
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^plan +topic +partitions +kept\ncreate +millrace\.ingress\.v1 +4 +1 h\n/);
    expect(out).toContain(`created ${TOPICS}, grew 0, 0 were as they should be`);
    expect(await admin.admin.listTopics()).toHaveLength(TOPICS);
    expect(await admin.partitionCount('millrace.ingress.v1')).toBe(4);
    const again = await apply();
    expect(again.out).toContain(`created 0, grew 0, ${TOPICS} were as they should be`);
    expect(again.out).not.toMatch(/^create /m);
  });

  it('tells what each topic keeps', async () => {
    const { out } = await apply();
    expect(out).toMatch(/millrace\.control\.v1 +1 +for ever/);
    expect(out).toMatch(/millrace\.pool-status\.v1 +1 +the last per key/);
    expect(out).toMatch(/millrace\.acks\.v1 +4 +10 min/);
    expect(out).toMatch(/millrace\.ingress\.v1\.dlq +1 +3 days/);
  });

  it('does nothing on a dry run', async () => {
    const { out, exitCode } = await apply(['--dry-run']);
    expect(exitCode).toBe(0);
    expect(out).toContain(`dry run, nothing was changed: ${TOPICS} to create`);
    expect(await admin.admin.listTopics()).toEqual([]);
  });

  it('adds partitions, and never takes any away', async () => {
    await apply();
    const grown = await apply(['--json'], { MILLRACE_SLOTS_PER_POOL: '6' });
    const plan = JSON.parse(grown.out);
    expect(plan).toMatchObject({ dryRun: false, create: 0, grow: 1, exists: TOPICS - 1 });
    expect(plan.topics).toContainEqual({
      topic: 'millrace.dispatch.cpu.v1',
      action: 'grow',
      partitions: 6,
      partitionsBefore: 4,
      differences: [],
    });
    expect(await admin.partitionCount('millrace.dispatch.cpu.v1')).toBe(6);
    const shrunk = await apply();
    expect(shrunk.out).toMatch(
      /exists +millrace\.dispatch\.cpu\.v1 +6 +has more than the 4 asked for; they stay/,
    );
    expect(await admin.partitionCount('millrace.dispatch.cpu.v1')).toBe(6);
  });

  it('lists values of topics that exist which are not those asked for, and sets them only where told', async () => {
    await apply();
    const events = 'millrace.control-events.v1';
    const old = { 'retention.ms': '34560000000', 'segment.bytes': '1000000' };
    await admin.admin.configureTopic(events, old);
    const told = await apply();
    expect(told.out).toContain(
      `created 0, grew 0, ${TOPICS - 1} were as they should be, 1 with other values`,
    );
    expect(told.out).toMatch(/exists +millrace\.control-events\.v1 +1 +400 days/);
    expect(told.out).toMatch(/millrace\.control-events\.v1 +retention\.ms +34560000000 +-1\nThey stay/);
    const plan = JSON.parse((await apply(['--configure', '--dry-run', '--json'])).out);
    expect(plan).toMatchObject({ exists: TOPICS - 1, differ: 1, configured: true });
    expect(plan.topics.find(({ topic }: { topic: string }) => topic === events).differences).toEqual([
      { name: 'retention.ms', present: '34560000000', wanted: '-1' },
    ]);
    expect((await configOf(events))?.['retention.ms']).toBe('34560000000');
    const set = await apply(['--configure']);
    expect(set.out).toContain('1 with other values, which were set');
    expect(await configOf(events)).toMatchObject({ 'retention.ms': '-1', 'segment.bytes': '1000000' });
    expect((await apply()).out).toContain(`${TOPICS} were as they should be\n`);
  });

  it('creates topics for whoever may not read configurations, and says what is not known', async () => {
    await apply();
    const { out, exitCode } = await apply([], {}, (bus) => {
      bus.admin.topicConfigs = () => Promise.reject(new Error('Topic authorization failed'));
    });
    expect(exitCode).toBe(0);
    expect(out).toContain('Values of topics that exist are not known: Topic authorization failed');
  });

  it('warns that keys move when partitions are added', async () => {
    await apply();
    const { out } = await apply([], { MILLRACE_KAFKA_PARTITIONS: '8' });
    expect(out).toMatch(/grow +millrace\.ingress\.v1 +4 → 8/);
    expect(out).toContain('let what is in flight drain first');
    expect(out).toMatch(
      /count the partitions of millrace\.scored-results\.v1 when they start: restart every worker, .*router, .*extractor/,
    );
  });

  it('asks for no restart where only dispatch topics grow: routers and workers follow those', async () => {
    await apply();
    const { out } = await apply([], { MILLRACE_SLOTS_PER_POOL: '6' });
    expect(out).toMatch(/grow +millrace\.dispatch\.cpu\.v1 +4 → 6/);
    expect(out).not.toContain('restart');
  });

  it('shows the settings of what it creates as JSON', async () => {
    const { out } = await apply(['--dry-run', '--json'], { MILLRACE_KAFKA_REPLICATION: '3' });
    expect(JSON.parse(out).topics[0]).toMatchObject({
      topic: 'millrace.ingress.v1',
      action: 'create',
      replication: 3,
      config: { 'min.insync.replicas': '2', 'message.timestamp.type': 'LogAppendTime' },
    });
  });
});

import { parseArgs } from 'node:util';
import type { Stack } from '../src/local-stack/stack.ts';
import { startStack } from '../src/local-stack/start-stack.ts';
import { type ControlRoom, openControlRoom } from '../test/slow/control-events.ts';
import { startRealPipeline } from '../test/slow/real-pipeline.ts';
import { machineMs } from './distribution/messages.ts';
import { policyText } from './distribution/policies.ts';
import { Subscribers } from './distribution/subscribers.ts';
import { percentile } from './pipeline/statistics.ts';
import type { BenchRow } from './run.ts';

/**
 * From a person's ABORT to routers that left the canary, the whole way: the command on Kafka, the controller's decision in its log on Kafka, the pointer in
 * Redis, 20 routers, each a thread with the control store, the policy source and a router of its own. The clock begins before the command is produced.
 *
 *   npm run bench -- abort --subscribers 20 --rounds 50
 */

const SCOPE = 'policy/bench';
const USAGE = {
  subscribers: { type: 'string', default: '20' },
  rounds: { type: 'string', default: '50' },
} as const;

export async function run(args: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const stack = await startStack();
  try {
    const many = Number(values.subscribers);
    const { tookMs, aloneMs } = await measureAborts(stack, many, Number(values.rounds));
    const what = `ABORT → 99 % of ${many} routers on stable, over Kafka and Redis`;
    return {
      rows: [
        { metric: `${what}, median`, value: percentile(tookMs, 0.5), unit: 'ms' },
        {
          metric: `${what}, worst of ${tookMs.length}`,
          value: Math.max(...tookMs),
          unit: 'ms',
          target: 1_000,
          relation: '<=',
        },
        {
          metric: 'of it until the decision can be read from Kafka, median',
          value: percentile(aloneMs, 0.5),
          unit: 'ms',
        },
      ],
    };
  } finally {
    await stack.stop();
  }
}

async function measureAborts(
  stack: Stack,
  many: number,
  rounds: number,
): Promise<{ tookMs: number[]; aloneMs: number[] }> {
  const pipeline = await startRealPipeline(stack.environment, {
    processes: [{ name: 'controller', service: 'policy-controller' }],
    environment: {
      MILLRACE_CONTROLLER_ACCEPT_UNSIGNED: 'true',
      MILLRACE_FLEET: 'examples/fleets/reference.yaml',
    },
  });
  const room = await openControlRoom(pipeline.client, SCOPE);
  await room.send('PUBLISH_POLICY', policyText(1).toString());
  const { prefix } = pipeline.settings;
  const data = { url: stack.redisUrl, prefix, scope: SCOPE, watchesPauses: false, waiting: 0 };
  const subscribers = await Subscribers.start(many, data);
  const tookMs: number[] = [];
  const aloneMs: number[] = [];
  try {
    for (let version = 2; version < 2 + rounds; version += 1) {
      await room.send('PUBLISH_POLICY', policyText(version).toString());
      await room.send('START', JSON.stringify({ version }));
      await room.send('PROMOTE', '{}');
      const canary = epochOf(room, 'rollout-advanced');
      const inForce = (): number[] | undefined => subscribers.appliedMs(canary);
      await subscribers.until('the canary is in force', () => inForce() !== undefined);
      const atMs = machineMs();
      await room.send('ABORT', JSON.stringify({ reason: 'a benchmark' }));
      aloneMs.push(machineMs() - atMs);
      const epoch = epochOf(room, 'rollout-aborted');
      await subscribers.until('all are on stable', () => subscribers.appliedMs(epoch) !== undefined);
      tookMs.push(percentile(subscribers.appliedMs(epoch) ?? [], 0.99) - atMs);
      subscribers.applied.length = 0;
    }
    return { tookMs, aloneMs };
  } finally {
    await subscribers.close();
    await pipeline.close();
  }
}

/** Of the pointer after the last event of this type. */
function epochOf(room: ControlRoom, type: string): number {
  const event = room.events.filter((each) => each.type === type).at(-1);
  if (event === undefined) throw new Error(`the log has no ${type}`);
  return event.epoch;
}

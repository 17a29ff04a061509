import { afterAll, beforeAll, it } from 'vitest';
import type { Stack } from '../../src/local-stack/stack.ts';
import { startStack } from '../../src/local-stack/start-stack.ts';
import type { Reader } from '../../src/ports/message-bus.ts';
import { follow } from '../../src/stages/follow.ts';
import { expectAllScored, moreResults, startLoad } from './load.ts';
import { DEFAULT_PROCESSES, eventually, type RealPipeline, startRealPipeline } from './real-pipeline.ts';

let stack: Stack;
let pipeline: RealPipeline;
let reader: Reader;
const held = new Map<string, readonly number[]>();

beforeAll(async () => {
  stack = await startStack();
  pipeline = await startRealPipeline(stack.environment, {
    processes: DEFAULT_PROCESSES.map((plan) => ({
      ...plan,
      environment: { ...plan.environment, MILLRACE_WORKER_SHARE_SLOTS: 'true' },
    })),
  });
  reader = await follow(pipeline.client, 'pool-status', 'PoolStatus', ({ worker, slots }) =>
    held.set(worker, slots.toSorted()),
  );
});

afterAll(async () => {
  await reader?.close();
  await pipeline?.close();
  await stack?.stop();
});

const slotsOf = (worker: string): number[] => [...(held.get(worker) ?? [])];

it('workers share the slots of their pool; one takes all when the other is killed under load, and gives half back when it returns', async () => {
  const isShared = (): boolean => {
    const [one, two] = [slotsOf('worker-1'), slotsOf('worker-2')];
    return one.length === 2 && two.length === 2 && new Set([...one, ...two]).size === 4;
  };
  await eventually(isShared, 'two slots each');
  const load = await startLoad(pipeline.client);
  await moreResults(load.ledger, 100);
  await pipeline.kill('worker-1');
  held.delete('worker-1');
  await eventually(() => slotsOf('worker-2').length === 4, 'all slots are with the one that is left');
  await moreResults(load.ledger, 100);
  await pipeline.start('worker-1');
  await eventually(isShared, 'two slots each again');
  await moreResults(load.ledger, 100);
  expectAllScored(await load.end());
});

import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import type { RunGraph } from '../../../src/inference/graph-call.ts';
import { VersionTables } from '../../../src/inference/items/version-tables.ts';
import { createSlabArena } from '../../../src/inference/memory/slab-arena.ts';
import { PackedModel } from '../../../src/inference/packed-model.ts';
import { configSchema } from '../../../src/inference/repository/config.ts';
import { modelVersion } from '../../../src/inference/repository/model-version.ts';
import { toyConfig, toyItem, toyRequest } from './toy-model.ts';

/** A model on a thread that computes nothing: `run` answers, and the slab is moved as between threads. */
function modelOn(run: RunGraph) {
  const arena = createSlabArena({ keptBytesMax: 1024 * 1024 });
  let unloads = 0;
  const model = new PackedModel({
    version: modelVersion(v.parse(configSchema, toyConfig()), { terms: [] }, 0),
    tables: VersionTables.none,
    capabilities: {
      backend: 'none',
      simulated: false,
      kernels: ['dense'],
      memories: ['host'],
      datatypes: ['FP32', 'INT64'],
    },
    runGraph: run,
    arena,
    onUnload: async () => {
      unloads += 1;
    },
  });
  return { model, arena, unloads: () => unloads };
}

const moved = (slab: ArrayBuffer): ArrayBuffer => structuredClone(slab, { transfer: [slab] });
const succeed: RunGraph = async ({ slab }) => ({ kind: 'ran', slab: moved(slab), computeMs: 2 });
const items = [toyItem(toyRequest(1, 3, 1)), toyItem(toyRequest(2, 2, 0))];

describe('batch memory', () => {
  test('is allocated once under a steady load', async () => {
    const { model, arena } = modelOn(succeed);
    for (let i = 0; i < 10; i++) await model.run(items, 'dense');
    expect(arena.allocations).toBe(1);
  });

  test('comes back from a call that failed', async () => {
    const { model, arena } = modelOn(async ({ slab }) => ({
      kind: 'failed',
      message: 'no',
      slab: moved(slab),
      computeMs: 1,
    }));
    for (let i = 0; i < 10; i++)
      await expect(model.run(items, 'dense')).rejects.toMatchObject({ code: 'MODEL_FAILED' });
    expect(arena.allocations).toBe(1);
  });
});

test('the next batch is packed while one runs', async () => {
  const packed: number[] = [];
  const answers: (() => void)[] = [];
  const { model } = modelOn(async (command) => {
    packed.push(command.slab.byteLength);
    await new Promise<void>((resolve) => answers.push(resolve));
    return succeed(command);
  });
  const runs = [model.run(items, 'dense'), model.run(items, 'dense')];
  expect(packed).toHaveLength(2);
  for (const answer of answers) answer();
  expect((await Promise.all(runs)).map((batch) => batch.items.length)).toEqual([2, 2]);
});

test('a call for each item after a failed one adds its time up', async () => {
  let calls = 0;
  const { model } = modelOn(async (command) => {
    calls += 1;
    if (calls === 1) return { kind: 'failed', message: 'together', slab: moved(command.slab), computeMs: 1 };
    return succeed(command);
  });
  const batch = await model.run(items, 'dense');
  expect(batch.items.map(({ status }) => status)).toEqual(['scored', 'scored']);
  expect(calls).toBe(3);
  expect(batch.computeMs).toBe(4);
});

test('a thread that is gone fails the batch', async () => {
  const { model } = modelOn(async () => ({ kind: 'failed', message: 'its thread ended', computeMs: 0 }));
  await expect(model.run(items, 'dense')).rejects.toThrowError(/toy@1: its thread ended/);
});

test('unloading waits for what runs, releases the session once, and tells', async () => {
  let answer: (() => void) | undefined;
  const { model, unloads } = modelOn(async (command) => {
    await new Promise<void>((resolve) => {
      answer = resolve;
    });
    return succeed(command);
  });
  const running = model.run(items, 'dense');
  const unloaded = Promise.all([model.unload(), model.unload()]);
  await expect(model.run(items, 'dense')).rejects.toMatchObject({ code: 'CLOSED' });
  expect(unloads()).toBe(0);
  answer?.();
  await unloaded;
  expect((await running).items).toHaveLength(2);
  expect(unloads()).toBe(1);
});

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { createSlabArena } from '../../../../src/inference/memory/slab-arena.ts';
import { SessionMaking } from '../../../../src/inference/onnx-cpu/session-making.ts';
import { type SessionThread, sessionThread } from '../../../../src/inference/onnx-cpu/session-thread.ts';
import { PackedModel } from '../../../../src/inference/packed-model.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';
import { scoresOf } from '../../../conformance/accelerator.fixture.ts';
import { wideItem, writeWideVersion } from '../sparse-cpu/wide-version.ts';

/** A thread whose runs of the sessions named fail; `released`: those that were let go; `ran`: those that were called. */
function spoiled(failing: readonly number[]) {
  const thread = sessionThread(systemClock());
  const released: number[] = [];
  const ran: number[] = [];
  const spoilt: SessionThread = {
    ...thread,
    died: thread.died,
    create: (command) => thread.create(command),
    run: async (command) => {
      ran.push(command.session);
      return failing.includes(command.session)
        ? { kind: 'failed', message: 'it is broken', slab: command.slab, computeMs: 0 }
        : thread.run(command);
    },
    release: (session) => {
      released.push(session);
      return thread.release(session);
    },
    close: () => thread.close(),
  };
  return { thread: spoilt, released, ran };
}

async function make(failing: readonly number[]) {
  const repository = await openRepository('models/repository');
  const { thread, released } = spoiled(failing);
  const making = new SessionMaking(thread, repository, repository.version('ranker', '1'), {});
  const made = making.ofKernels(['dense', 'sparse']);
  return { thread, released, made };
}

it('a version whose golden cases fail leaves no session behind, of either kernel', async () => {
  const { thread, released, made } = await make([1]);
  await expect(made).rejects.toMatchObject({
    code: 'INVALID_MODEL',
    message: expect.stringContaining('it is broken'),
  });
  expect(released).toEqual([1, 2]);
  await thread.close();
});

it('one whose golden cases fail by the sparse kernel alone goes without it', async () => {
  const { thread, released, made } = await make([2]);
  const { refusedKernels, release } = await made;
  expect([...refusedKernels]).toEqual([['sparse', expect.stringContaining('it is broken')]]);
  await release();
  expect(released).toEqual([1, 2]);
  await thread.close();
});

it('one that both can run lets both go', async () => {
  const { thread, released, made } = await make([]);
  const { refusedKernels, release } = await made;
  expect(refusedKernels.size).toBe(0);
  await release();
  await release();
  expect(released).toEqual([1, 2]);
  await thread.close();
});

describe('a version of layers alone', () => {
  const sizes = { inner: 20, columns: 12 };
  const [DENSE, LAYERS] = [1, 2];
  let root: string;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'millrace-layers-'));
    await writeWideVersion(root, sizes);
  });
  afterAll(() => rm(root, { recursive: true, force: true }));

  async function modelWith(failing: readonly number[]) {
    const repository = await openRepository(root);
    const version = repository.version('wide', '1');
    const spoilt = spoiled(failing);
    const sessions = await new SessionMaking(spoilt.thread, repository, version, {}).ofKernels(['dense']);
    const model = new PackedModel({
      version,
      tables: await repository.itemTables(version),
      capabilities: {
        ...{ backend: 'onnx-cpu', simulated: false, kernels: ['dense'] },
        ...{ memories: ['host'], datatypes: ['FP32', 'INT64'] },
      },
      runGraph: sessions.run,
      arena: createSlabArena({ keptBytesMax: 0 }),
      onUnload: sessions.release,
    });
    spoilt.ran.length = 0;
    return { ...spoilt, model };
  }

  const item = (candidates: number) => wideItem(sizes, { seed: 1, candidates, zeroShare: 0 });

  it('has its small batches computed by them, and its large ones by the runtime', async () => {
    const { thread, released, ran, model } = await modelWith([]);
    const large = await model.run([item(1_000)], 'dense');
    const small = await model.run([item(9), item(5)], 'dense');
    expect(ran).toEqual([DENSE, LAYERS]);
    const [want, got] = [large.items[0], small.items[0]].map((result) => scoresOf(result).heads[0]?.values);
    expect(want?.length).toBe(1_000);
    expect(small.computeMs).toBeGreaterThan(0);
    expect(got?.length).toBe(9);
    await model.unload();
    expect(released).toEqual([DENSE, LAYERS]);
    await thread.close();
  });

  it('scores the same by either', async () => {
    const { thread, model } = await modelWith([]);
    const by = await modelWith([LAYERS]);
    const [got, want] = [
      await model.run([item(9), item(5)], 'dense'),
      await by.model.run([item(9), item(5)], 'dense'),
    ];
    expect(by.ran).toEqual([DENSE]);
    want.items.forEach((result, n) => {
      const values = scoresOf(got.items[n]).heads[0]?.values;
      scoresOf(result).heads[0]?.values.forEach((value, i) => {
        expect(values?.[i]).toBeCloseTo(value, 6);
      });
    });
    await Promise.all([thread.close(), by.thread.close()]);
  });
});

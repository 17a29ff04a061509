import { expect, it } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { SessionMaking } from '../../../../src/inference/onnx-cpu/session-making.ts';
import { type SessionThread, sessionThread } from '../../../../src/inference/onnx-cpu/session-thread.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';

/** A thread whose runs of the sessions named fail; `released`: those that were let go. */
function spoiled(failing: readonly number[]) {
  const thread = sessionThread(systemClock());
  const released: number[] = [];
  const spoilt: SessionThread = {
    ...thread,
    died: thread.died,
    create: (command) => thread.create(command),
    run: async (command) =>
      failing.includes(command.session)
        ? { kind: 'failed', message: 'it is broken', slab: command.slab, computeMs: 0 }
        : thread.run(command),
    release: (session) => {
      released.push(session);
      return thread.release(session);
    },
    close: () => thread.close(),
  };
  return { thread: spoilt, released };
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

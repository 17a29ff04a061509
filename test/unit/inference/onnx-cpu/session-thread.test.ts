import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { createOnnxCpuAccelerator } from '../../../../src/inference/onnx-cpu/accelerator.ts';
import type { SessionCommand } from '../../../../src/inference/onnx-cpu/messages.ts';
import { sessionThread } from '../../../../src/inference/onnx-cpu/session-thread.ts';
import { toyVersion } from '../profile/toy-version.fixture.ts';
import { toyItem, toyRequest } from '../toy-model.ts';

function runOf(session: number): Extract<SessionCommand, { kind: 'run' }> {
  return { kind: 'run', session, slab: new ArrayBuffer(64), feeds: [], outputs: [] };
}

test('an unknown session fails the call and gives its memory back', async () => {
  const thread = sessionThread(systemClock());
  const answer = await thread.run(runOf(7));
  expect(answer).toMatchObject({ kind: 'failed', message: 'there is no session 7' });
  expect(answer.kind === 'failed' && answer.slab?.byteLength).toBe(64);
  await thread.close();
});

test('closing fails the calls that are under way, and refuses later ones', async () => {
  const thread = sessionThread(systemClock());
  const running = thread.run(runOf(1));
  await thread.close();
  expect(await running).toMatchObject({ kind: 'failed' });
  await expect(thread.run(runOf(1))).rejects.toMatchObject({ code: 'CLOSED' });
});

test('a thread that dies by itself says so, and leaves what is under way unanswered', async () => {
  const worker = new Worker('setInterval(() => {}, 1_000)', { eval: true });
  const thread = sessionThread(systemClock(), worker);
  const answered: unknown[] = [];
  void thread.run(runOf(1)).then((answer) => answered.push(answer));
  await worker.terminate();
  expect(await thread.died).toBe('its thread ended');
  void thread.run(runOf(1)).then((answer) => answered.push(answer));
  await new Promise((resolve) => setImmediate(resolve));
  expect(answered).toEqual([]);
});

test('a thread that was closed did not die', async () => {
  const thread = sessionThread(systemClock());
  const died: string[] = [];
  void thread.died.then((reason) => died.push(reason));
  await thread.close();
  await new Promise((resolve) => setImmediate(resolve));
  expect(died).toEqual([]);
});

test('a batch took what the thread saw, however late its answer is read', async () => {
  const { repository } = await toyVersion();
  const clock = systemClock();
  const accelerator = createOnnxCpuAccelerator({ repository, clock });
  const model = await accelerator.load('toy', '1');
  const items = [toyItem(toyRequest(1, 10, 2))];
  await model.run(items, 'dense');
  const runs = [model.run(items, 'dense'), model.run(items, 'dense')];
  // Both are computed meanwhile, and their answers read at once.
  const untilMs = clock.monotonicMs() + 300;
  while (clock.monotonicMs() < untilMs);
  const times = (await Promise.all(runs)).map(({ computeMs }) => computeMs);
  await accelerator.close();
  for (const computeMs of times) {
    expect(computeMs).toBeGreaterThan(0);
    expect(computeMs).toBeLessThan(250);
  }
});

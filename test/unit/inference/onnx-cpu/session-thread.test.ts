import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import type { SessionCommand } from '../../../../src/inference/onnx-cpu/messages.ts';
import { sessionThread } from '../../../../src/inference/onnx-cpu/session-thread.ts';

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

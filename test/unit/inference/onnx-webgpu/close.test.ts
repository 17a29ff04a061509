import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { createOnnxCpuAccelerator } from '../../../../src/inference/onnx-cpu/accelerator.ts';
import type { SessionThread } from '../../../../src/inference/onnx-cpu/session-thread.ts';
import { createOnnxWebgpuAccelerator } from '../../../../src/inference/onnx-webgpu/accelerator.ts';
import { toyVersion } from '../profile/toy-version.fixture.ts';

/** A device's thread that makes a session for as long as a test wants; `seen`: what befell it, in order. */
function slowThreads() {
  const seen: string[] = [];
  const asked = Promise.withResolvers<void>();
  const made = Promise.withResolvers<void>();
  const startThread = (): SessionThread => {
    seen.push('started');
    return {
      died: new Promise(() => undefined),
      create: async () => {
        asked.resolve();
        await made.promise;
        seen.push('made');
        return { kind: 'failed', message: 'no device' };
      },
      run: () => Promise.reject(new Error('this test runs nothing')),
      release: async () => undefined,
      close: async () => {
        seen.push('ended');
      },
    };
  };
  return { seen, asked: asked.promise, made, startThread };
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('close', () => {
  it.each([
    [false, ['started', 'made', 'ended']],
    [true, ['started', 'started', 'made', 'ended', 'ended']],
  ])('of a device waits for the load under way, beside others: %s', async (besideOthers, expected) => {
    const { repository } = await toyVersion();
    const { seen, asked, made, startThread } = slowThreads();
    const accelerator = createOnnxWebgpuAccelerator({ repository, clock: systemClock(), startThread });
    const loading = accelerator.load('toy', '1', { besideOthers });
    loading.catch(() => undefined);
    await asked;
    const closing = accelerator.close();
    await nextTurn();
    expect(seen).not.toContain('ended');
    made.resolve();
    await closing;
    expect(seen).toEqual(expected);
    await expect(loading).rejects.toMatchObject({ code: expect.any(String) });
  });

  it.each([
    ['a CPU', createOnnxCpuAccelerator],
    ['a device', createOnnxWebgpuAccelerator],
  ])('of %s leaves no thread to a load that comes to it later', async (_, create) => {
    const { repository } = await toyVersion();
    const { seen, made, startThread } = slowThreads();
    made.resolve();
    const accelerator = create({ repository, clock: systemClock(), startThread });
    const loading = accelerator.load('toy', '1', { besideOthers: true });
    loading.catch(() => undefined);
    await accelerator.close();
    await expect(loading).rejects.toMatchObject({ code: 'CLOSED' });
    expect(seen).toEqual(['started', 'ended']);
  });

  it('of a CPU ends the threads of loads under way, those beside others too', async () => {
    const { repository } = await toyVersion();
    const { seen, asked, startThread } = slowThreads();
    const accelerator = createOnnxCpuAccelerator({ repository, clock: systemClock(), startThread });
    void accelerator.load('toy', '1', { besideOthers: true }).catch(() => undefined);
    await asked;
    await accelerator.close();
    expect(seen).toEqual(['started', 'started', 'ended', 'ended']);
  });
});

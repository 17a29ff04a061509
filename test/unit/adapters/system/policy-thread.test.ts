import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import { type PolicyThread, policyThread } from '../../../../src/adapters/system/policy-thread.ts';
import { compilePolicy } from '../../../../src/core/policy/compile.ts';
import { REFERENCE_FLEET } from '../../../../src/core/policy/fleet.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { compileChecked } from '../../../../src/wiring/policy-files.ts';

const STARTER = readFileSync('examples/policies/starter.yaml');
const fleet = REFERENCE_FLEET;

const threads: PolicyThread[] = [];
afterEach(async () => {
  await Promise.all(threads.splice(0).map((thread) => thread.close()));
});

function start(script?: string): { thread: PolicyThread; started: Worker[] } {
  const started: Worker[] = [];
  const host = new URL('../../../../src/adapters/system/policy-thread-host.ts', import.meta.url);
  const thread = policyThread(systemClock(), () => {
    // The first one is the faulty one.
    const isFaulty = script !== undefined && started.length === 0;
    const worker = isFaulty ? new Worker(script, { eval: true }) : new Worker(host);
    started.push(worker);
    return worker;
  });
  threads.push(thread);
  return { thread, started };
}

describe('a policy that is read in a thread', () => {
  it('decides as one that is read here', async () => {
    const { thread } = start();
    const there = compilePolicy(await thread.read(STARTER, fleet), { fleet });
    const here = compileChecked(STARTER, fleet);
    expect(there.signalNames).toEqual(here.signalNames);
    expect(there.leaves).toEqual(here.leaves);
    const random = seededRandom(1).stream('signals');
    for (let n = 0; n < 2_000; n += 1) {
      const signals = Float64Array.from(
        here.signalNames,
        () => random.next() * (random.next() < 0.5 ? 1 : 200),
      );
      expect(there.decide(signals)).toBe(here.decide(signals));
    }
  });

  it.each([
    ['nothing', ''],
    ['null', 'null'],
    ['an unknown accelerator', STARTER.toString().replaceAll('fpga', 'abacus')],
    ['a golden test that fails', STARTER.toString().replace('biasMax > 0.8', 'biasMax > 0.95')],
  ])('is refused with the same words: %s', async (_name, text) => {
    const bytes = Buffer.from(text);
    let words = 'it passed';
    try {
      compileChecked(bytes, fleet);
    } catch (error) {
      words = error instanceof Error ? error.message : String(error);
    }
    await expect(start().thread.read(bytes, fleet)).rejects.toMatchObject({
      code: 'INVALID_POLICY',
      message: words,
    });
  });

  it('shares its thread with others, each with its own answer', async () => {
    const { thread, started } = start();
    const answers = await Promise.allSettled([
      thread.read(STARTER, fleet),
      thread.read(Buffer.from('null'), fleet),
      thread.read(STARTER, fleet),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(started).toHaveLength(1);
  });
});

describe('a thread that', () => {
  it.each([
    [
      'throws',
      "require('node:worker_threads').parentPort.on('message', () => { throw new Error('broken'); })",
    ],
    ['ends', "require('node:worker_threads').parentPort.on('message', () => process.exit(1))"],
  ])(
    '%s fails the call without a word about the policy, and the next call gets another',
    async (_what, script) => {
      const { thread, started } = start(script);
      await expect(thread.read(STARTER, fleet)).rejects.toMatchObject({ code: 'CLOSED' });
      expect((await thread.read(STARTER, fleet)).name).toBe('starter');
      expect(started).toHaveLength(2);
    },
  );

  it('is closed answers nobody any more', async () => {
    const { thread } = start("require('node:worker_threads').parentPort.on('message', () => {})");
    const reading = thread.read(STARTER, fleet);
    const refused = expect(reading).rejects.toMatchObject({ code: 'CLOSED' });
    await thread.close();
    await refused;
    await expect(thread.read(STARTER, fleet)).rejects.toMatchObject({ code: 'CLOSED' });
  });
});

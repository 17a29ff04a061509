import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  NoAnswer,
  type Patience,
  patiently,
  patientlyTwice,
} from '../../../../src/adapters/registry/patience.ts';

const never = (): Promise<never> => new Promise(() => undefined);

/** A request that ends as libraries end theirs: with an error of their own when the signal says so. */
const abortable = (ms: number, { signal }: Patience): Promise<string> =>
  sleep(ms, 'answer', { signal }).catch(() => Promise.reject(new Error('The operation was aborted')));

describe('patiently', () => {
  it('answers what came in time', async () => {
    expect(await patiently(20_000, (patience) => abortable(1, patience))).toBe('answer');
  });

  it('passes a failure on as it is', async () => {
    const failure = new Error('timeout of somebody else');
    await expect(patiently(1_000, () => Promise.reject(failure))).rejects.toBe(failure);
  });

  it.each([
    { what: 'hears no signal', ask: never },
    { what: 'ends with an error of its own', ask: (patience: Patience) => abortable(60_000, patience) },
  ])('ends with NoAnswer where the request $what', async ({ ask }) => {
    const ended = await patiently(20, ask).catch((error: unknown) => error);
    expect(ended).toBeInstanceOf(NoAnswer);
    expect(ended).toMatchObject({ code: 'NO_ANSWER', message: 'no answer within 20 ms' });
  });

  it('gives each request of a call the whole time', async () => {
    const three = async (patience: Patience): Promise<number> => {
      for (let index = 0; index < 3; index += 1) {
        patience.begin();
        await abortable(400, patience);
      }
      return 3;
    };
    expect(await patiently(1_000, three)).toBe(3);
  });

  it('gives no more time to a request that follows one given up', async () => {
    let signal: AbortSignal | undefined;
    const stubborn = async (patience: Patience): Promise<void> => {
      signal = patience.signal;
      await abortable(60_000, patience).catch(() => undefined);
      patience.begin();
      await abortable(60_000, patience);
    };
    await expect(patiently(20, stubborn)).rejects.toBeInstanceOf(NoAnswer);
    expect(signal?.aborted).toBe(true);
  });
});

describe('patientlyTwice', () => {
  it.each([
    { silences: 0, asked: 1, outcome: 'answer' },
    { silences: 1, asked: 2, outcome: 'answer' },
    { silences: 2, asked: 2, outcome: 'NO_ANSWER' },
    { silences: 9, asked: 2, outcome: 'NO_ANSWER' },
  ])('after $silences requests without an answer: $outcome', async ({ silences, asked, outcome }) => {
    let count = 0;
    const ask = (): Promise<string> => {
      count += 1;
      return count <= silences ? never() : Promise.resolve('answer');
    };
    const ended = await patientlyTwice(50, ask).catch((error: { code: string }) => error.code);
    expect({ ended, count }).toEqual({ ended: outcome, count: asked });
  });

  it('asks once where the first time failed otherwise, whatever the error is called', async () => {
    let count = 0;
    const ask = (): Promise<string> => {
      count += 1;
      return Promise.reject(Object.assign(new Error('request timed out'), { name: 'TimeoutError' }));
    };
    await expect(patientlyTwice(1_000, ask)).rejects.toThrow('request timed out');
    expect(count).toBe(1);
  });
});

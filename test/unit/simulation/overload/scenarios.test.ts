import { describe, expect, it } from 'vitest';
import { millracePolicy } from '../../../../src/simulation/overload/millrace-policy.ts';
import { POOL_POLICIES } from '../../../../src/simulation/overload/policies.ts';
import {
  measureAfterBurst,
  measureDrift,
  measureGoodput,
} from '../../../../src/simulation/overload/scenarios.ts';

const SEED = 11;
const POOL = { servers: 4, seconds: 12 };

describe('an overload', () => {
  const cinnamon = measureGoodput(POOL_POLICIES.Cinnamon, SEED, POOL);

  it('of twice the capacity leaves the servers busy with what counts, whichever order is paid for', () => {
    const onePrice = measureGoodput(POOL_POLICIES['one-price'], SEED, POOL);
    expect(onePrice.useful).toBeGreaterThan(0.99);
    expect(onePrice.value).toBeGreaterThan(0.97);
    expect(onePrice.value).toBeGreaterThan(1.05 * cinnamon.value);
    const strict = measureGoodput(POOL_POLICIES.strict, SEED, POOL);
    expect(strict.useful).toBeGreaterThan(0.99);
    expect(strict.answered).toBeGreaterThan(0.87);
    expect(strict.strictValue).toBeGreaterThan(0.97);
  });

  it.each([1.5, 4, 8])('of %d times the capacity does so too', (load) => {
    const { useful, value } = measureGoodput(POOL_POLICIES['one-price'], SEED, { ...POOL, seconds: 5, load });
    expect(useful).toBeGreaterThan(0.99);
    expect(value).toBeGreaterThan(0.97);
  });

  it.each([0.7, 1.5])('does so too where the capacity was believed %d of what it is', (believed) => {
    const { useful, value } = measureGoodput(millracePolicy('one-price', believed), SEED, POOL);
    expect(useful).toBeGreaterThan(0.985);
    expect(value).toBeGreaterThan(0.965);
  });
});

describe('after ten seconds of it, with clients that send again', () => {
  const answered = (name: keyof typeof POOL_POLICIES): number[] =>
    measureAfterBurst(POOL_POLICIES[name], SEED, { servers: 1, seconds: 8 }).map(
      (each) => each.answered / each.sent,
    );

  it('a worker is back within two seconds', () => {
    for (const name of ['strict', 'one-price'] as const)
      for (const share of answered(name).slice(2)) expect(share).toBeGreaterThan(0.97);
  });

  it('one without control stays down, and so does one with a limit by latency', () => {
    for (const name of ['no control', 'Gradient2'] as const)
      for (const share of answered(name)) expect(share).toBeLessThan(0.5);
  });
});

it('limits stay where they are under an overload that lasts', () => {
  const { limit, value } = measureDrift(POOL_POLICIES.strict, SEED, { servers: 2, hours: 0.1, windows: 3 });
  expect(limit).toBeLessThan(0.05);
  expect(value).toBeLessThan(0.05);
});

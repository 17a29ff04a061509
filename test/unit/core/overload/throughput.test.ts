import { describe, expect, it } from 'vitest';
import { Throughput } from '../../../../src/core/overload/throughput.ts';

describe('the throughput of a pool', () => {
  it('is what was expected, before anything was measured', () => {
    expect(new Throughput(10).perMs()).toBe(10);
  });

  it.each([
    ['30 % below the truth', 7],
    ['30 % above it', 13],
  ])('is found by completions where it was believed %s', (_, believed) => {
    const throughput = new Throughput(believed);
    for (let tick = 0; tick < 100; tick += 1) throughput.observe(100, 10);
    expect(throughput.perMs()).toBeGreaterThan(9);
    expect(throughput.perMs()).toBeLessThan(11);
    for (let tick = 0; tick < 900; tick += 1) throughput.observe(100, 10);
    expect(throughput.perMs()).toBeCloseTo(10, 1);
  });

  it('follows servers that go away, and forgets what was long ago', () => {
    const throughput = new Throughput(10);
    for (let tick = 0; tick < 5_000; tick += 1) throughput.observe(100, 10);
    for (let tick = 0; tick < 1_000; tick += 1) throughput.observe(50, 10);
    expect(throughput.perMs()).toBeCloseTo(5, 1);
  });

  it('stays above nothing where all servers hang', () => {
    const throughput = new Throughput(10);
    for (let tick = 0; tick < 100_000; tick += 1) throughput.observe(0, 10);
    expect(throughput.perMs()).toBeCloseTo(0.01, 10);
  });
});

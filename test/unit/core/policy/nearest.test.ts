import { describe, expect, it } from 'vitest';
import { didYouMean, nearestName } from '../../../../src/core/policy/nearest.ts';

describe('nearestName', () => {
  const names = ['when', 'tree', 'fallback', 'gpu-a100', 'gpu-v100', 'to'];

  it.each([
    ['wen', 'when'],
    ['WHEN', 'when'],
    ['fallbacks', 'fallback'],
    ['gpu_a100', 'gpu-a100'],
    ['too', 'to'],
    ['x', undefined],
    ['tpu', undefined],
    ['branches', undefined],
    ['', undefined],
  ])('%s is near %s', (written, expected) => {
    expect(nearestName(written, names)).toBe(expected);
  });

  it('compares no more than 64 letters', () => {
    expect(nearestName('t'.repeat(1_000_000), names)).toBeUndefined();
  });

  it('looks at no more than 256 names', () => {
    let looked = 0;
    function* endless(): Generator<string> {
      for (;;) yield `name${looked++}`;
    }
    expect(nearestName('when', endless())).toBeUndefined();
    expect(looked).toBeLessThan(260);
  });

  it('makes advice only where there is some', () => {
    expect(didYouMean('tre', names)).toEqual({ advice: 'Did you mean "tree"?' });
    expect(didYouMean('tpu', names)).toEqual({});
    expect(didYouMean('tpu', [])).toEqual({});
  });
});

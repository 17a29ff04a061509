import { describe, expect, it } from 'vitest';
import { NO_WORKER_UTILISATION } from '../../../../src/core/rollout/projection.ts';
import { ProjectedPools } from '../../../../src/stages/policy-controller/projected-pools.ts';

function meansOf(...windows: Record<string, number>[]): Record<string, number> {
  const pools = new ProjectedPools();
  for (const window of windows) pools.take(window);
  return Object.fromEntries(pools.means());
}
const nobody = { cpu: NO_WORKER_UTILISATION };

describe('what windows project for a pool', () => {
  it('is the mean over all of them: one that sent it nothing counts as nothing', () => {
    expect(meansOf({ cpu: 0.25 }, { cpu: 0.25, gpu: 0.5 }, {}, { cpu: 0.5 })).toEqual({
      cpu: 0.25,
      gpu: 0.125,
    });
  });

  it('leaves windows out in which nobody was heard of for a moment', () => {
    const means = meansOf({ cpu: 0.2 }, nobody, { cpu: 0.4 });
    expect(means['cpu']).toBeCloseTo(0.3);
  });

  it.each([
    ['always', [nobody, nobody]],
    ['half of the time', [nobody, { cpu: 0.1 }]],
    ['whenever it was needed', [nobody, {}, {}, {}]],
  ])('is far over any bound where nobody could work %s', (_when, windows) => {
    expect(meansOf(...windows)).toEqual({ cpu: NO_WORKER_UTILISATION });
  });
});

import { describe, expect, it } from 'vitest';
import { fitLook, LOOK_BYTES_MAX } from '../../../../src/stages/policy-controller/fit-look.ts';
import { arm, headScores, observation, shadow } from '../../core/rollout/rollout.fixture.ts';

const bytesOf = (look: object): number => Buffer.byteLength(JSON.stringify(look));

const withHeads = (heads: number) =>
  observation(1_000, {
    canary: arm(5_000),
    scores: Object.fromEntries(
      Array.from({ length: heads }, (_, head) => [`ranker/head-${head}`, headScores(95_000, 5_000)]),
    ),
  });

describe('a look', () => {
  it('that fits into the log goes in as it is', () => {
    const look = withHeads(3);
    expect(fitLook(look)).toBe(look);
  });

  it('of too many heads goes in without their scores, and says so', () => {
    const look = withHeads(1_000);
    expect(bytesOf(look)).toBeGreaterThan(LOOK_BYTES_MAX);
    const fitted = fitLook(look);
    expect(fitted).toMatchObject({ canary: look.canary, pools: look.pools, scores: {} });
    expect(fitted.leftOut).toMatch(/scores of 1000 heads were left out.* bytes, at most 1000000/);
  });

  it('that is too large without them is one in which nothing was seen', () => {
    const leaves = Object.fromEntries(Array.from({ length: 100 }, (_, leaf) => [`leaf-${leaf}`, 1]));
    const fitted = fitLook(observation(1_000, { shadow: shadow({ leaves }) }), 600);
    expect(fitted).toMatchObject({ atMs: 1_000, canary: { requests: 0 }, shadow: undefined });
    expect(fitted.leftOut).toMatch(/the look was left out/);
  });
});

import { expect, it } from 'vitest';
import { armOf, saltsOf } from '../../../../src/core/rollout/bucket.ts';
import { KEY_GROUPS, keyGroupOf } from '../../../../src/core/scores/key-group.ts';

const keys = Array.from({ length: 40_000 }, (_, index) => `user-${index}`);

it('groups of keys are of one size, in each arm of a rollout too', () => {
  const unit = { ...saltsOf('sha256:c@7'), percent: 25 };
  for (const arm of ['STABLE', 'CANARY']) {
    const sizes = new Array<number>(KEY_GROUPS).fill(0);
    const ofArm = keys.filter((key) => armOf(unit, key) === arm);
    for (const key of ofArm) sizes[keyGroupOf(key)] = (sizes[keyGroupOf(key)] ?? 0) + 1;
    const expected = ofArm.length / KEY_GROUPS;
    for (const size of sizes) expect(Math.abs(size - expected)).toBeLessThan(5 * Math.sqrt(expected));
  }
});

import { breakwaterPolicy } from './breakwater-policy.ts';
import { cinnamonPolicy } from './cinnamon-policy.ts';
import { dagorPolicy } from './dagor-policy.ts';
import { dcafPolicy } from './dcaf-policy.ts';
import { giePolicy } from './gie-policy.ts';
import { gradient2Policy } from './gradient2-policy.ts';
import { millracePolicy } from './millrace-policy.ts';
import { noControl } from './no-control-policy.ts';
import type { CreatePolicy } from './pool-policy.ts';

export const POOL_POLICIES = {
  strict: millracePolicy('strict'),
  'one-price': millracePolicy('one-price'),
  Cinnamon: cinnamonPolicy,
  DAGOR: dagorPolicy,
  Breakwater: breakwaterPolicy,
  Gradient2: gradient2Policy,
  GIE: giePolicy,
  DCAF: dcafPolicy,
  'no control': noControl,
} as const satisfies Record<string, CreatePolicy>;

export type PoolPolicyName = keyof typeof POOL_POLICIES;

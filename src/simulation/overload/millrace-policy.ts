import type { OverloadOrder } from '../../core/overload/overload-order.ts';
import { OverloadQueue } from '../../core/overload/overload-queue.ts';
import { OverloadRules } from '../../core/overload/overload-rules.ts';
import type { CreatePolicy } from './pool-policy.ts';
import type { Attempt } from './pool-request.ts';

/** The rules that run live, before a simulated pool. */
export function millracePolicy(order: OverloadOrder, believedShare = 1): CreatePolicy {
  return ({ servers, slaMs, onDrop }) => {
    const rules = new OverloadRules({ order, slaMs, expectedThroughput: servers * believedShare }, 0);
    const queue = new OverloadQueue<Attempt>(rules);
    return {
      tickMs: 10,
      arrive: (attempt, nowMs) => queue.push(attempt, nowMs) === 'admit',
      next: (nowMs) => queue.next(nowMs, onDrop),
      complete: ({ costMs, busyMs }) => queue.complete(costMs, busyMs),
      tick: (nowMs) => queue.tick(nowMs),
      limit: () => rules.throughput,
    };
  };
}

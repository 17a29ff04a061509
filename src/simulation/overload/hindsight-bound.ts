import type { OverloadOrder } from '../../core/overload/overload-order.ts';
import type { WorkPart } from '../../core/overload/priced-work.ts';
import type { PoolRequest } from './pool-request.ts';

/**
 * An upper bound on the value that any policy can get out of so much server time, with everything known beforehand: parts of requests by real density,
 * the last one in part (fractional knapsack: Dantzig 1957), and no deadline but the end. Nothing that must be decided as requests come can reach it.
 * In strict order it bounds what can be had when all base work comes before any extra.
 * @param capacityMs server time
 */
export function hindsightBound(
  requests: Iterable<PoolRequest>,
  capacityMs: number,
  order: OverloadOrder = 'one-price',
): number {
  const base: WorkPart[] = [];
  const extras: WorkPart[] = [];
  for (const request of requests) {
    base.push(realPart(request.base, request));
    for (const extra of request.extras) extras.push(realPart(extra, request));
  }
  if (order === 'one-price') return fill([...base, ...extras], capacityMs);
  const baseMs = base.reduce((sum, { costMs }) => sum + costMs, 0);
  return fill(base, capacityMs) + fill(extras, Math.max(0, capacityMs - baseMs));
}

function realPart({ costMs, value }: WorkPart, { noise }: PoolRequest): WorkPart {
  return { costMs: costMs * noise, value };
}

function fill(parts: readonly WorkPart[], capacityMs: number): number {
  let leftMs = capacityMs;
  let total = 0;
  for (const { costMs, value } of parts.toSorted((a, b) => b.value / b.costMs - a.value / a.costMs)) {
    if (costMs >= leftMs) return total + value * (leftMs / costMs);
    leftMs -= costMs;
    total += value;
  }
  return total;
}

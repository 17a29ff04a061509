import type { RoutableRequest } from '../../contracts/records.ts';
import type { Leaf } from '../../core/policy/compile.ts';
import type { ModelWanted } from '../../core/routing/choose.ts';

/** The model that a request asks for, of the variant that its leaf insists on. */
export function modelWanted(request: RoutableRequest, leaf: Leaf): ModelWanted {
  return {
    family: request.model,
    version: request.modelVersion ?? undefined,
    variant: leaf.variant ?? 'baseline',
  };
}

/** Service time at speed 1. A request whose cost could not be predicted counts as 1 ms, so that it still weighs in a queue. */
export function predictedMsOf(request: RoutableRequest): number {
  const predicted = request.signals['predictedCostMs'];
  return predicted !== undefined && predicted > 0 ? predicted : 1;
}

import type { RoutableRequest } from '../../contracts/records.ts';
import type { Leaf } from '../../core/policy/compile.ts';
import type { PolicyDocument } from '../../core/policy/document.ts';
import type { ModelWanted } from '../../core/routing/choose.ts';

/** The model that a request asks for, of the variant that its leaf insists on: the version that it pins, else the one that the policy names. */
export function modelWanted(
  { model: family, modelVersion }: Pick<RoutableRequest, 'model' | 'modelVersion'>,
  { models }: Pick<PolicyDocument, 'models'>,
  leaf: Leaf,
): ModelWanted {
  const variant = leaf.variant ?? 'baseline';
  if (modelVersion !== null) return { family, version: modelVersion, variant, isPinned: true };
  const named = models.size === 0 ? undefined : models.get(family)?.[variant];
  return { family, version: named, variant, isPinned: false };
}

/** The versions that a policy names for what ends in a leaf. */
export function modelsNamed({ models }: Pick<PolicyDocument, 'models'>, leaf: Leaf): ModelWanted[] {
  const variant = leaf.variant ?? 'baseline';
  return [...models].flatMap(([family, choice]) => {
    const version = choice[variant];
    return version === undefined ? [] : [{ family, version, variant, isPinned: false }];
  });
}

/** Service time at speed 1. A request whose cost could not be predicted counts as 1 ms, so that it still weighs in a queue. */
export function predictedMsOf(request: Pick<RoutableRequest, 'signals'>): number {
  const predicted = request.signals['predictedCostMs'];
  return predicted !== undefined && predicted > 0 && Number.isFinite(predicted) ? predicted : 1;
}

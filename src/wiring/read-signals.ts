import { randomUUID } from 'node:crypto';
import type { RequestInput } from '../client/client.ts';
import type { Settings } from '../config/settings.ts';
import { makeScoreRequest } from '../contracts/records.ts';
import { MillraceError } from '../core/errors.ts';
import type { SignalValue } from '../core/policy/document.ts';
import { checkRequest } from '../core/request/check.ts';
import { DEFAULT_REQUEST_LIMITS } from '../core/request/limits.ts';
import { createSignalExtractor } from '../core/signals/extract.ts';
import { costModels } from '../inference/cost-models.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { openModels } from './backends.ts';

/**
 * What a policy sees of a request: its hints, the signals that the extractor reads off it, and its allow-listed context.
 * @throws MillraceError with the code that the pipeline would refuse the request with
 */
export async function readSignals(
  input: RequestInput,
  settings: Settings,
  telemetry: Telemetry,
): Promise<Map<string, SignalValue>> {
  const repository = await openModels(settings, telemetry);
  const families = new Map(repository.families.map(({ family, contract }) => [family, contract]));
  const request = makeScoreRequest({ ...input, requestId: input.requestId ?? randomUUID() });
  const check = checkRequest(request, families, {
    ...DEFAULT_REQUEST_LIMITS,
    tensorBytesMax: settings.limits.requestBytesMax,
    contextKeys: new Set(settings.limits.contextKeys),
  });
  if (check.status === 'rejected') throw new MillraceError(check.code, check.message);
  const signals = createSignalExtractor(costModels(repository)).extract(check);
  return new Map<string, SignalValue>([
    ...Object.entries(request.hints),
    ...Object.entries(signals),
    ...Object.entries(check.context),
  ]);
}

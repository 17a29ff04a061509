import type { RequestInput } from '../client/client.ts';
import { packaged } from '../config/package-root.ts';
import type { Settings } from '../config/settings.ts';
import { parseModelName } from '../core/request/family.ts';
import { openRepository } from '../inference/repository/open-repository.ts';

/**
 * The inputs that a request leaves out and its model family takes: a history, say. It is scored without them, and a result does not say so.
 *
 * @returns names by the model folder of the settings; none for a family that is not in it
 * @throws MillraceError where the folder cannot be read
 */
export async function absentInputs(
  { model, requestTensors = [] }: Pick<RequestInput, 'model' | 'requestTensors'>,
  settings: Pick<Settings, 'models'>,
): Promise<string[]> {
  const { families } = await openRepository(packaged(settings.models, 'models', 'repository'));
  const { family } = parseModelName(model);
  const inputs = families.find((known) => known.family === family)?.contract.inputs ?? [];
  const sent = new Set(requestTensors.map(({ name }) => name));
  return inputs
    .filter(({ side, required, idFrom, name }) => {
      const isLeftOut = side === 'request' && !required && idFrom === undefined;
      return isLeftOut && !sent.has(name);
    })
    .map(({ name }) => name);
}

import { MillraceError } from '../../core/errors.ts';
import type { InputContract } from '../../core/request/family.ts';
import type { Accelerator } from '../../ports/accelerator.ts';
import type { CascadeStage, ModelVersion } from '../repository/model-version.ts';
import type { ModelRepository } from '../repository/open-repository.ts';
import { CascadeModel, type LoadedStage } from './cascade-model.ts';
import type { StageInputs } from './chosen-candidates.ts';

/** The accelerator, on which a version that declares a cascade is loaded with the versions before it. */
export function withCascades(accelerator: Accelerator, repository: ModelRepository): Accelerator {
  return {
    capabilities: accelerator.capabilities,
    failed: accelerator.failed,
    async load(family, version, options) {
      const wanted = repository.version(family, version);
      if (wanted.cascade.length === 0) return accelerator.load(family, version, options);
      const versions = [...wanted.cascade.map((stage) => stageVersion(repository, wanted, stage)), wanted];
      const stages: LoadedStage[] = [];
      try {
        for (const [place, each] of versions.entries()) {
          const model = await accelerator.load(each.family, each.version, options);
          const keep = wanted.cascade[place]?.keep ?? Number.POSITIVE_INFINITY;
          stages.push({ model, inputs: stageInputs(each), keep });
        }
      } catch (error) {
        await Promise.all(stages.map(({ model }) => model.unload()));
        throw error;
      }
      return new CascadeModel(stages);
    },
    close: () => accelerator.close(),
  };
}

/**
 * The version of a stage, which must be able to score whatever a request to `of` sends.
 * @throws MillraceError MODEL_UNAVAILABLE where the repository has not, or not yet, such a version; INVALID_MODEL where it does not fit
 */
function stageVersion(repository: ModelRepository, of: ModelVersion, stage: CascadeStage): ModelVersion {
  const name = `${stage.family}@${stage.version}`;
  const found = findVersion(repository, of, stage);
  const problem = found.cascade.length > 0 ? 'it is a cascade itself' : misfit(found, of, stage);
  if (problem === undefined) return found;
  throw new MillraceError(
    'INVALID_MODEL',
    `${of.family}@${of.version} cannot have ${name} before it: ${problem}`,
  );
}

function findVersion(
  repository: ModelRepository,
  of: ModelVersion,
  { family, version }: CascadeStage,
): ModelVersion {
  try {
    return repository.version(family, version);
  } catch (cause) {
    throw new MillraceError(
      'MODEL_UNAVAILABLE',
      `${of.family}@${of.version} is a cascade, and a version before it is missing`,
      { value: `${family}@${version}`, advice: 'Put it into the model folder, or publish it first.', cause },
    );
  }
}

function misfit(stage: ModelVersion, of: ModelVersion, { place }: CascadeStage): string | undefined {
  const entering = place === 0 ? of.limits.candidatesMax : (of.cascade[place - 1]?.keep ?? 0);
  if (stage.limits.candidatesMax < entering)
    return `it takes ${stage.limits.candidatesMax} candidates, and ${entering} may come`;
  if (stage.limits.sequenceLengthMax < of.limits.sequenceLengthMax)
    return `it takes sequences of ${stage.limits.sequenceLengthMax} rows, and ${of.limits.sequenceLengthMax} may come`;
  if (stage.limits.tensorBytesMax < of.limits.tensorBytesMax)
    return `it takes ${stage.limits.tensorBytesMax} bytes of tensors, and ${of.limits.tensorBytesMax} may come`;
  return stage.inputs.map((input) => inputMisfit(input, stage, of)).find((problem) => problem !== undefined);
}

/** What is made (an index, a length) or may be left out need not be sent. */
function inputMisfit(input: InputContract, stage: ModelVersion, of: ModelVersion): string | undefined {
  const { name } = input;
  const describe = ({ side, datatype, shape }: InputContract): string =>
    `${side} ${datatype} [${shape.join(', ')}]`;
  if (input.side === 'request-index') return undefined;
  const isSourced = (version: ModelVersion): boolean => version.sources.some((each) => each.input === name);
  const sent = of.inputs.find((each) => each.name === name);
  // Rows of the last version's sources are there by the time that it runs, as if they had been sent.
  const isThere = sent?.required === true || isSourced(of);
  if (isSourced(stage) && !isThere)
    return `its input ${name} comes from a feature source, and those of the last version alone are read`;
  if (sent === undefined)
    return input.required ? `requests do not send its input ${name} (${describe(input)})` : undefined;
  if (describe(sent) !== describe(input))
    return `its input ${name} is ${describe(input)}, and requests send ${describe(sent)}`;
  return input.required && !isThere ? `its input ${name} may not be left out` : undefined;
}

function stageInputs({ inputs }: ModelVersion): StageInputs {
  const names = (...sides: InputContract['side'][]): Set<string> =>
    new Set(inputs.filter(({ side }) => sides.includes(side)).map(({ name }) => name));
  return { request: names('request', 'request-length'), candidate: names('candidate') };
}

import { listNames, MillraceError } from '../../core/errors.ts';
import type { Dim, OnnxGraph, OnnxValue } from '../onnx-file/graph.ts';
import type { PlannedInput } from './planned-input.ts';

/** What a person said of a model's inputs; where one side is named, the rest are the other's. */
export interface SaidSides {
  readonly requestInputs?: readonly string[] | undefined;
  readonly candidateInputs?: readonly string[] | undefined;
}

/** A first axis of such a name may count rows of a sequence, in a file that has no axis for requests. */
const SEQUENCE_AXES = /^(t|seq|len|time|step|hist)/i;

export type Side = Pick<PlannedInput, 'side' | 'why'>;

/** Inputs whose names mostly mean the side of the request; only ever an advice. */
const REQUEST_NAMES = /user|viewer|member|history|context|query|session|request|profile/i;

/**
 * Which inputs are the same for all candidates of a request. Shapes tell it where one input has an axis of rows and another has none, or
 * where their axes have names and only some have the output's; names of inputs never decide.
 *
 * @param rowsOf the axis that counts candidates, where it is known: that of a `request_index`
 * @throws MillraceError INVALID_MODEL where shapes do not tell, INVALID_CONFIG where what was said does not fit
 */
export function inputSides(
  graph: OnnxGraph,
  inputs: readonly OnnxValue[],
  said: SaidSides,
  rowsOf?: Dim,
): Map<string, Side> {
  const isSaid = said.requestInputs !== undefined || said.candidateInputs !== undefined;
  const sides = isSaid ? saidSides(inputs, said) : guessedSides(graph, inputs, rowsOf);
  if (![...sides.values()].some(({ side }) => side === 'candidate')) {
    throw new MillraceError('INVALID_MODEL', 'no input of the model is of the candidates', {
      value: inputs.map(({ name }) => name).join(', '),
      advice: 'Name those that differ between candidates: --candidate-inputs',
    });
  }
  return sides;
}

function saidSides(inputs: readonly OnnxValue[], said: SaidSides): Map<string, Side> {
  const { requestInputs, candidateInputs } = said;
  return new Map(
    inputs.map(({ name }): [string, Side] => {
      const isRequest = requestInputs?.includes(name) ?? candidateInputs?.includes(name) === false;
      const isCandidate = candidateInputs?.includes(name) ?? requestInputs?.includes(name) === false;
      if (isRequest === isCandidate) {
        throw new MillraceError(
          'INVALID_CONFIG',
          `input ${name} is on ${isRequest ? 'both sides' : 'no side'}`,
          {
            allowed: 'each input in one of --request-inputs and --candidate-inputs',
            advice: 'Of two flags one may be left out: it takes the rest',
          },
        );
      }
      const named = isRequest ? requestInputs : candidateInputs;
      return [name, { side: isRequest ? 'request' : 'candidate', why: named ? 'as you said' : 'the rest' }];
    }),
  );
}

function guessedSides(graph: OnnxGraph, inputs: readonly OnnxValue[], rowsOf?: Dim): Map<string, Side> {
  const dynamic = inputs.filter((input) => typeof input.shape?.[0] === 'string');
  const rows = rowsOf ?? candidateRows(graph, dynamic);
  const sides = new Map(
    inputs.map((input): [string, Side] => [input.name, guessedSide(input, rows) ?? undecided(inputs)]),
  );
  const isOneSided = ![...sides.values()].some(({ side }) => side === 'request');
  if (isOneSided && rowsOf === undefined) undecided(inputs);
  return sides;
}

/** The name of the axis that counts candidates: the output's, or the only one that there is; '' for one without a name. */
function candidateRows({ outputs }: OnnxGraph, dynamic: readonly OnnxValue[]): string | undefined {
  const names = new Set(dynamic.map(axisOf));
  const [output] = outputs;
  const ofOutput = output === undefined ? undefined : axisOf(output);
  if (ofOutput !== undefined && names.has(ofOutput)) return ofOutput;
  return names.size === 1 ? [...names][0] : undefined;
}

function guessedSide(input: OnnxValue, rows: Dim | undefined): Side | undefined {
  const [first] = input.shape ?? [];
  if (!(input.shape ?? []).some((size) => typeof size === 'string'))
    return { side: 'request', why: 'its shape is fixed: no axis counts candidates' };
  if (typeof first === 'number') return { side: 'request', why: `its first dimension is ${first}` };
  const axis = axisOf(input);
  if (axis === rows)
    return { side: 'candidate', why: axis === '' ? 'its first axis is free' : `its first axis is ${axis}` };
  if (axis === '' || axis === undefined || rows === '' || rows === undefined) return undefined;
  if (SEQUENCE_AXES.test(axis)) return undefined;
  return { side: 'request', why: `its first axis is ${axis}, and not ${rows} as that of the candidates` };
}

/** The name of the first axis; '' where the file has none for it (the reader makes one of the input's own). */
export function axisOf({ name, shape }: OnnxValue): string | undefined {
  const first = shape?.[0];
  if (typeof first !== 'string') return undefined;
  return first === `${name}.0` ? '' : first;
}

function undecided(inputs: readonly OnnxValue[]): never {
  const names = inputs.map(({ name }) => name);
  const likely = names.filter((name) => REQUEST_NAMES.test(name));
  const example = likely.length > 0 && likely.length < names.length ? likely.join(',') : (names[0] ?? '');
  throw new MillraceError(
    'INVALID_MODEL',
    'the shapes do not tell which inputs are the same for all candidates of a request',
    {
      value: inputs.map(({ name, shape }) => `${name} [${shape?.join(', ') ?? '?'}]`).join(', '),
      allowed: listNames(names),
      advice: `Name them, such as --request-inputs ${example}; the rest are then the candidates'. If none is: --candidate-inputs ${names.join(',')}`,
    },
  );
}

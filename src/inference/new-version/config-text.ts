import { stringify } from 'yaml';
import { ELEMENT_BYTES } from '../../core/request/tensor.ts';
import type { HintDefault } from '../rank-by.ts';
import { INDEX_INPUTS } from '../rocs/lowering.ts';
import { REQUEST_INDEX } from './made-inputs.ts';
import { isSequenceInput, type PlannedInput } from './planned-input.ts';

/** What config.yaml says that no file of a model does. */
export interface VersionWords {
  readonly family: string;
  readonly version: number;
  readonly variant: 'baseline' | 'enhanced';
  readonly synthetic: boolean;
  readonly description: string;
  readonly slaMs: number;
  readonly calibrationTarget: string;
  readonly hints: readonly HintDefault[];
  readonly rankBy: string;
  readonly candidatesMax: number;
  readonly rowsMax: number;
}

export interface ConfigHead {
  readonly name: string;
  readonly probability: boolean;
  readonly meaning: string;
}

export interface ConfigParts {
  readonly words: VersionWords;
  /** File name of the model that was given. */
  readonly source: string;
  /** `sha256:<hex>` of model.onnx. */
  readonly digest: string;
  readonly opset: number;
  readonly inputs: readonly PlannedInput[];
  /** Whether a request may come without its sequences. */
  readonly emptySequences: boolean;
  readonly usesTiles: boolean;
  readonly heads: readonly ConfigHead[];
}

/** config.yaml, format 1, in the order of models/README.md and with a line for each input and head. */
export function configText({ words, heads, ...parts }: ConfigParts): string {
  const inputs = [...parts.inputs.map((input) => inputEntry(input, parts.emptySequences)), INDEX_ENTRY];
  const { candidates, requests, slots } = TILE_NAMES;
  return [
    `# Written by \`millrace model init\` from ${oneLine(parts.source)}: yours to edit. Format: models/README.md.`,
    plain({ format: 1, family: words.family, version: words.version, variant: words.variant }),
    plain({ synthetic: words.synthetic, description: words.description }),
    plain({ model: { file: 'model.onnx', digest: parts.digest, opset: parts.opset } }),
    list('inputs', inputs),
    ...(parts.usesTiles ? [`tiles: ${flow({ candidates, requests, slots })}`] : []),
    list(
      'heads',
      heads.map(({ name, ...rest }) => ({
        name,
        datatype: 'FP32',
        axes: ['candidate'],
        shape: [-1],
        ...rest,
      })),
    ),
    list('hints', words.hints),
    plain({ rankBy: words.rankBy, slaMs: words.slaMs, calibrationTarget: words.calibrationTarget }),
    plain({
      limits: {
        candidatesMax: words.candidatesMax,
        sequenceLengthMax: words.rowsMax,
        tensorBytesMax: bytesMax(parts.inputs, words),
      },
    }),
    plain({ golden: 'golden.json', cost: 'cost.json' }),
    '',
  ].join('\n');
}

const INDEX_ENTRY = {
  name: REQUEST_INDEX,
  side: 'index',
  datatype: 'INT64',
  shape: [-1],
  axes: ['candidate'],
};
const TILE_NAMES = {
  candidates: INDEX_INPUTS.tileCandidates,
  requests: INDEX_INPUTS.tileRow,
  slots: INDEX_INPUTS.candidateSlot,
};

function inputEntry(input: PlannedInput, emptySequences: boolean): object {
  const { name, side, datatype, rowShape, lengthOf } = input;
  const isSequence = isSequenceInput(input);
  const rowAxes = rowShape.map((_, axis) => (axis === 0 && isSequence ? 'sequence' : 'feature'));
  return {
    name,
    side,
    datatype,
    shape: [
      -1,
      ...(lengthOf === undefined ? rowShape.map((size) => (typeof size === 'number' ? size : -1)) : []),
    ],
    axes: [side, ...(lengthOf === undefined ? rowAxes : [])],
    ...(isSequence && emptySequences ? { optional: true } : {}),
    ...(lengthOf === undefined ? {} : { lengthOf }),
  };
}

/** Of all that one request sends, at its limits. */
function bytesMax(inputs: readonly PlannedInput[], { candidatesMax, rowsMax }: VersionWords): number {
  const bytes = inputs.map(({ side, datatype, rowShape }) =>
    [side === 'candidate' ? candidatesMax : 1, ...rowShape].reduce<number>(
      (product, size) => product * (typeof size === 'number' ? size : rowsMax),
      ELEMENT_BYTES[datatype],
    ),
  );
  return bytes.reduce((sum, each) => sum + each, 0);
}

function list(key: string, entries: readonly object[]): string {
  if (entries.length === 0) return `${key}: []`;
  return [`${key}:`, ...entries.map((entry) => `  - ${flow(entry)}`)].join('\n');
}

function plain(value: object): string {
  return withoutBreak(stringify(value, { lineWidth: 0 }));
}

function flow(value: object): string {
  return withoutBreak(stringify(value, { lineWidth: 0, collectionStyle: 'flow' }));
}

/** Nothing but the last break: a text may end with a space of another kind, which YAML keeps as it is. */
function withoutBreak(text: string): string {
  return text.replace(/\n$/, '');
}

function oneLine(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?');
}

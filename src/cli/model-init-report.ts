import { join, resolve } from 'node:path';
import { packaged } from '../config/package-root.ts';
import { sentShapes } from '../inference/new-version/example-request.ts';
import type { MadeVersion } from '../inference/new-version/make-version.ts';
import type { MeasuredCost } from '../inference/new-version/measured-cost.ts';
import { isSequenceInput, type PlannedInput } from '../inference/new-version/planned-input.ts';
import { tableLines } from './table.ts';

export interface Placed {
  readonly made: MadeVersion;
  readonly out: string;
  readonly family: string;
  readonly version: number;
  readonly folder: string;
}

/** For `--json`. */
export function initReport({ made, family, version, folder }: Placed): object {
  const { plan, heads, rankBy, emptySequences, sharing, goldenCases, cost } = made;
  return {
    ...{ family, version, folder, files: [...made.files.keys()].map((name) => join(folder, name)) },
    inputs: plan.inputs.map((input) => ({
      name: input.name,
      side: input.side,
      datatype: input.datatype,
      shape: input.rowShape,
      ...(isSequenceInput(input) ? { optional: emptySequences } : {}),
      ...(input.lengthOf === undefined ? {} : { lengthOf: input.lengthOf }),
      why: input.why,
    })),
    ...{ heads, rankBy, ...sharing, goldenCases, limits: made.limits },
    cost: {
      features: cost.features,
      coefficients: cost.coefficients,
      medianRelativeError: cost.error.median,
      p95RelativeError: cost.error.p95,
    },
  };
}

/** For people: what was guessed, what was found, and what to do next. */
export function initLines(placed: Placed): string[] {
  const { made, family, version, folder } = placed;
  const { plan, heads, rankBy, sharing, goldenCases, cost } = made;
  const inputs = plan.inputs.map((input) => [input.name, input.side, shapeOf(input, made), input.why]);
  const headRows = heads.map(({ name, probability, meaning }) => [
    name,
    probability ? 'probability' : 'number',
    meaning,
  ]);
  return [
    ...tableLines(['input', 'side', 'of a row', 'why'], inputs),
    'Otherwise: --request-inputs, --candidate-inputs, --lengths',
    '',
    ...tableLines(['head', 'is a', 'from'], headRows),
    `rank by: ${rankBy}`,
    'Otherwise: --outputs, --heads, --rank-by; probability and meaning in config.yaml',
    '',
    sharingLine(sharing),
    `golden cases: ${goldenCases} of made-up requests, the same scores as the file gives; read, opened and run as a worker does`,
    `cost of a request: ${costFormula(cost)} ms (off by ${percent(cost.error.median)} in the median, ${percent(cost.error.p95)} at the 95th percentile, on shapes kept out of the fit)`,
    `a request sends: ${sentShapes(plan).join(', ')}; ${limitsText(made)}`,
    `written: ${folder} (${[...made.files.keys()].join(', ')})`,
    '',
    `Next, ${family}@${version}:`,
    ...nextSteps(placed).map((command) => `  ${command}`),
  ];
}

function shapeOf(input: PlannedInput, { emptySequences }: MadeVersion): string {
  const { rowShape, datatype } = input;
  const dims = rowShape.map((size) => (typeof size === 'number' ? size : 'rows'));
  const optional = isSequenceInput(input) && emptySequences ? ', may be left out' : '';
  return `${datatype} [${dims.join(', ')}]${optional}`;
}

function sharingLine({ sharing, usesTiles, multiplications }: MadeVersion['sharing']): string {
  if (sharing === 'copies')
    return 'request side: copied for each candidate, nothing is shared (without --no-share it is computed once)';
  if (sharing === 'nothing')
    return 'request side: no input is the same for all candidates, nothing is shared';
  if (sharing === 'given') return 'request side: the file had a row per request already';
  const { given, candidate } = multiplications ?? { given: 0, candidate: 0 };
  const left = given === 0 ? 100 : (100 * candidate) / given;
  const tiles = usesTiles ? '; candidates lie in tiles' : '';
  return `request side: once per request; ${left.toFixed(0)} % of the multiplications are left per candidate${tiles}`;
}

function limitsText({ plan, limits }: MadeVersion): string {
  const rows = plan.inputs.some(isSequenceInput) ? `, ${limits.rowsMax} rows of a sequence` : '';
  return `up to ${limits.candidatesMax} candidates${rows}, in ${limits.slaMs} ms where it names no deadline`;
}

/** `0.06 + 0.0005·N`: terms that cost something. */
function costFormula({ features, coefficients }: MeasuredCost): string {
  const terms = features.flatMap((feature, n) => {
    const coefficient = coefficients[n] ?? 0;
    if (coefficient === 0) return [];
    return [feature === '1' ? String(coefficient) : `${coefficient}·${feature.replaceAll('*', '·')}`];
  });
  return terms.length === 0 ? '0' : terms.join(' + ');
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

function nextSteps({ out, folder }: Placed): string[] {
  const isPackaged = resolve(out) === resolve(packaged('', 'models', 'repository'));
  const models = isPackaged ? '' : `MILLRACE_MODELS=${quoted(out)} `;
  return [
    `${models}millrace score ${quoted(join(folder, 'request.json'))}`,
    `millrace model publish ${quoted(folder)}`,
  ];
}

function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

import { basename } from 'node:path';
import { Command, Option } from 'commander';
import { loadSettings } from '../config/load-settings.ts';
import { fileError, readUserFile } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
import type { VersionOptions } from '../inference/new-version/make-version.ts';
import { placeVersion } from '../inference/new-version/place-version.ts';
import { type TritonWords, tritonWords } from '../inference/new-version/triton-words.ts';
import type { OnnxGraph } from '../inference/onnx-file/graph.ts';
import { readTritonConfig } from '../inference/triton-config/triton-config.ts';
import type { CliContext } from './context.ts';
import { count, positiveNumber, seed } from './flags.ts';
import { checkAsWorker, versionNumber } from './model-init-place.ts';
import { initLines, initReport, type Placed } from './model-init-report.ts';
import { checkInputNames, namesIn, readOnnxModel } from './onnx-model.ts';
import { pairsIn } from './pairs.ts';
import { boundsOf, type TrialFlags, withTrialBounds } from './trial-flags.ts';
import { tryInProcess } from './trial-process.ts';
import { waitingFor } from './waiting.ts';

interface InitFlags extends TrialFlags {
  family: string;
  requestInputs?: string;
  candidateInputs?: string;
  lengths?: string;
  size?: string;
  outputs?: string;
  configPbtxt?: string;
  heads?: string;
  rankBy?: string;
  hints?: string;
  out: string;
  modelVersion?: number;
  variant: 'baseline' | 'enhanced';
  description?: string;
  calibrationTarget?: string;
  synthetic: boolean;
  slaMs: number;
  candidatesMax?: number;
  sequenceMax: number;
  unmasked: boolean;
  share: boolean;
  seed: number;
  force: boolean;
  json: boolean;
}

/** How long calls are measured for the cost model. */
const MEASURE_MS = 3_000;
const CANDIDATES_MAX = 2_048;

/** `millrace model init <model.onnx>`: a version that workers serve, out of a model file. */
export function modelInitCommand(context: CliContext): Command {
  const command = new Command('init')
    .description('Make a model version that workers serve out of an ONNX file')
    .argument('<model.onnx>', 'FP32 inputs, INT64 ids, a score for each candidate')
    .requiredOption('--family <name>', 'model family: what requests name');
  return withTrialBounds(withOptions(command))
    .addHelpText('after', HELP)
    .action((file: string, flags: InitFlags) => init(context, file, flags));
}

function withOptions(command: Command): Command {
  return command
    .option(
      '--request-inputs <names>',
      'inputs that are the same for all candidates of a request, separated by commas',
    )
    .option(
      '--candidate-inputs <names>',
      'inputs that differ between candidates; of the two the one left out takes the rest',
    )
    .option('--lengths <pairs>', 'which input counts the rows of which sequence: history_length=history')
    .option('--size <pairs>', 'sizes for axes that each call would decide: T=32')
    .option('--outputs <names>', 'outputs that are scores; all of them where left out')
    .option('--heads <names>', 'names of the heads, in the order of outputs and of their columns')
    .option('--rank-by <expression>', 'what makes the score of a candidate: click * (0.2 + weight * buy)')
    .option('--hints <pairs>', 'numbers that a request may give to --rank-by, and what stands in: weight=1')
    .option(
      '--config-pbtxt <file>',
      "a Triton model's configuration: the outputs that are served, sizes of axes, max_batch_size as --candidates-max; what other flags say wins",
    )
    .option(
      '--out <folder>',
      'model repository: the version goes to <folder>/<family>/<version>',
      'models/repository',
    )
    .option('--model-version <n>', 'number of the version; the next that is free where left out', count)
    .addOption(
      new Option('--variant <variant>', 'which variant of the family it is')
        .choices(['baseline', 'enhanced'])
        .default('baseline'),
    )
    .option('--description <text>', 'one line about it')
    .option(
      '--calibration-target <text>',
      'what the heads are calibrated to; versions of the same may replace each other',
    )
    .option('--synthetic', 'it was trained on synthetic data: shown beside its scores', false)
    .option('--sla-ms <ms>', 'deadline of a request that names none', positiveNumber, 100)
    .option('--candidates-max <n>', 'candidates of one request (default: 2048)', count)
    .option('--sequence-max <n>', 'rows of a sequence of one request', count, 64)
    .option('--unmasked', 'share what can be shared of layers without a mask', false)
    .option(
      '--no-share',
      'copy the inputs of the request for each candidate, where the compiler refuses the model',
    )
    .option('--seed <n>', 'of the made-up inputs of golden cases', seed, 1)
    .option('--force', 'replace the version of --model-version', false)
    .option('--json', 'print one JSON object instead of text', false);
}

const HELP = `
Writes into <out>/<family>/<version>:
  model.onnx    the model with its request side computed once per request (as millrace model compile does)
  config.yaml   inputs and their sides, heads, how to rank, limits: yours to edit
  golden.json   made-up requests and what the file as it was given makes of each, alone; every worker runs them before it serves
  cost.json     what a request costs, fitted to calls measured on this machine
  request.json  an example for millrace score

Which inputs are the request's is read off the shapes: those with no axis for candidates, with a first dimension of 1, or with another name on
their first axis than the output has. Where all have the same first axis, as models are trained, it must be said: --request-inputs.
Every guess is printed. A sequence (an axis of rows that each request decides) needs an INT64 input that counts its rows, or one --size.

Before anything is written the version is held against the file: the same scores, whatever other requests and rows of padding a call has. Then
it is read, opened and run as a worker would. It is tried in a process of its own, which is ended where it takes more than --memory-max or --time-max. What fails is refused with the reason, and nothing is left behind.

Exit code: 0 written, 2 refused.

Examples:
  millrace model init ranker.onnx --family feed --out my-models
  millrace model init ranker.onnx --family feed --request-inputs user,history,history_length --heads click,buy --rank-by "click + 3 * buy"
  millrace model init dcn.onnx --family ads --request-inputs user --unmasked --json
  millrace model init models/dcn/1/model.onnx --config-pbtxt models/dcn/config.pbtxt --family ads --request-inputs user
  MILLRACE_MODELS=my-models millrace score my-models/feed/1/request.json`;

async function init(context: CliContext, file: string, flags: InitFlags): Promise<void> {
  const graph = readOnnxModel(file);
  checkInputNames(graph, [...(named(flags.requestInputs) ?? []), ...(named(flags.candidateInputs) ?? [])]);
  checkFamily(flags.family);
  const version = await versionNumber(flags.out, flags.family, flags);
  const source = basename(file);
  const { limits } = loadSettings(context.environment).settings;
  const options = optionsOf(flags, { version, source, ...limits }, wordsOfTriton(flags.configPbtxt, graph));
  const making = tryInProcess({ kind: 'init', file, source, options }, boundsOf(flags), context.clock);
  const made = await waitingFor(context, 'making golden cases and measuring', making);
  const { out, family } = flags;
  const name = { family, version: String(version) };
  const folder = await placeVersion(out, { ...name, files: made.files, replace: flags.force }, (repository) =>
    checkAsWorker(context, repository, { out, ...name }),
  ).catch((error: unknown) => {
    throw error instanceof MillraceError
      ? error
      : fileError('the version cannot be written', out, error, 'written');
  });
  const placed: Placed = { made, out, family, version, folder };
  context.stdout.write(
    flags.json ? `${JSON.stringify(initReport(placed))}\n` : `${initLines(placed).join('\n')}\n`,
  );
}

/** @throws MillraceError that names the file */
function wordsOfTriton(file: string | undefined, graph: OnnxGraph): TritonWords {
  if (file === undefined) return { outputs: undefined, sizes: new Map(), candidatesMax: undefined };
  const text = readUserFile(file, 'the configuration of the Triton model').toString('utf8');
  try {
    return tritonWords(readTritonConfig(text), graph);
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    throw new MillraceError(error.code, `${file}: ${error.message}`, { cause: error });
  }
}

function optionsOf(
  flags: InitFlags,
  { version, source, requestBytesMax }: { version: number; source: string; requestBytesMax: number },
  triton: TritonWords,
): VersionOptions {
  const hints = [...pairsIn('--hints', flags.hints, finite)].map(([name, value]) => ({
    name,
    default: value,
  }));
  return {
    inputs: {
      requestInputs: named(flags.requestInputs),
      candidateInputs: named(flags.candidateInputs),
      lengths: pairsIn('--lengths', flags.lengths, (text) => text),
    },
    sizes: new Map([...triton.sizes, ...pairsIn('--size', flags.size, wholeNumber)]),
    outputs: named(flags.outputs) ?? triton.outputs,
    heads: named(flags.heads),
    words: {
      ...{ family: flags.family, version, variant: flags.variant, synthetic: flags.synthetic, hints },
      description: flags.description ?? `made of ${source}`,
      slaMs: flags.slaMs,
      calibrationTarget: flags.calibrationTarget,
      rankBy: flags.rankBy,
      candidatesMax: flags.candidatesMax ?? triton.candidatesMax ?? CANDIDATES_MAX,
      rowsMax: flags.sequenceMax,
    },
    ...{
      unmasked: flags.unmasked,
      share: flags.share,
      seed: flags.seed,
      measureMs: MEASURE_MS,
      requestBytesMax,
    },
  };
}

function named(text: string | undefined): string[] | undefined {
  return text === undefined ? undefined : namesIn(text);
}

function finite(text: string): number | undefined {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : undefined;
}

function wholeNumber(text: string): number | undefined {
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined;
}

/** Before a folder of that name is looked at. */
function checkFamily(family: string): void {
  if (/^[a-z][a-z0-9-]{0,127}$/.test(family)) return;
  throw new MillraceError('INVALID_CONFIG', 'this is no name of a model family', {
    value: family,
    allowed: 'lower-case letters, digits and -, beginning with a letter',
  });
}

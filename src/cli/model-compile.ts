import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { writeUserFiles } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
import { checkNames, checkSizes } from '../inference/new-version/input-bounds.ts';
import type { Multiplications } from '../inference/rocs/multiplications.ts';
import { COMPILED_FILES, type CompileFindings, type CompileJob } from './compile-job.ts';
import type { CliContext } from './context.ts';
import { checkInputNames, namesIn, readOnnxModel } from './onnx-model.ts';
import { boundsOf, type TrialFlags, withTrialBounds } from './trial-flags.ts';
import { tryInProcess } from './trial-process.ts';
import { waitingFor } from './waiting.ts';

interface CompileFlags extends TrialFlags {
  requestInputs: string;
  candidateInputs: string;
  between?: string[];
  out: string;
  unmasked?: boolean;
  force?: boolean;
  measure: boolean;
  json?: boolean;
}

/** What was written, and what was found out on the way. */
interface Report extends CompileFindings {
  files: string[];
}

/** `millrace model compile <model.onnx>`: a model whose request side runs once per request. */
export function modelCompileCommand(context: CliContext): Command {
  const command = new Command('compile')
    .description('Compile a model so that its request side runs once per request, not once per candidate')
    .argument('<model.onnx>', 'a model whose inputs all have a row per candidate')
    .requiredOption(
      '--request-inputs <names>',
      'inputs that are the same for all candidates of a request, separated by commas',
    )
    .requiredOption('--candidate-inputs <names>', 'inputs of each candidate')
    .option(
      '--between <names...>',
      'inputs of groups between them, earliest first (a session: the same for several requests of a user)',
    )
    .option('--out <folder>', 'where to write the compiled graphs', '.')
    .option(
      '--unmasked',
      'compile a model whose layers let candidates reach the request side too: it shares less',
    )
    .option('--force', 'write over files of an earlier run')
    .option('--no-measure', 'do not measure how many requests a second each form runs')
    .option('--json', 'print the report as one JSON object');
  return withTrialBounds(command)
    .addHelpText(
      'after',
      `
Writes, from one set of weights:
  model.onnx      one graph: request inputs [requests, …], candidate inputs [candidates, …], request_index [candidates]
  request.onnx    what of it follows from the request: its outputs are the request artefact
  candidate.onnx  the rest: the artefact, candidates and request_index in, scores out
Where candidates look at a request's sequence (attention), keys and values are never copied for each of them: candidates lie in tiles of one
request, and the graph has three more inputs that say how (tile_candidates, tile_request, candidate_slot).

Before anything is written the compiled model is held against the given one on made-up batches: the same scores to 1e-5 of the largest, of
the two graphs too, and no candidate that changes another's. Whether the two graphs give the same bits as the one is said. A node that would let one candidate reach another is refused by its name.
All of it runs in a process of its own, which is ended where it takes more than --memory-max or --time-max.
Then it says how many multiplications are left per candidate, and warns where less than a third is shared.

Exit code: 0 written, 2 refused.

Examples:
  millrace model compile ranker.onnx --request-inputs user,history,history_length --candidate-inputs item --out build
  millrace model compile ranker.onnx --request-inputs user --candidate-inputs item --unmasked --json`,
    )
    .action((file: string, flags: CompileFlags) => compile(context, file, flags));
}

async function compile(context: CliContext, file: string, flags: CompileFlags): Promise<void> {
  const graph = readOnnxModel(file);
  checkNames(graph);
  graph.inputs.forEach(checkSizes);
  checkPlaces(file, flags);
  const groups = [flags.requestInputs, ...(flags.between ?? []), flags.candidateInputs].map(namesIn);
  checkInputNames(graph, groups.flat());
  const { unmasked = false, measure } = flags;
  const job: CompileJob = { kind: 'compile', file, groups, unmasked, measure };
  const compiling = tryInProcess(job, boundsOf(flags), context.clock);
  const { graphs, found } = await waitingFor(context, 'compiling and comparing', compiling);
  const report = { files: writeUserFiles(flags.out, graphs), ...found };
  context.stdout.write(flags.json === true ? `${JSON.stringify(report)}\n` : describe(report));
  warnOfLittle(context, report.multiplications);
}

/** @throws MillraceError INVALID_CONFIG where a file would be written over */
function checkPlaces(file: string, { out, force }: CompileFlags): void {
  const there = COMPILED_FILES.filter((name) => existsSync(join(out, name)));
  if (there.some((name) => realpathSync(join(out, name)) === realpathSync(file)))
    throw new MillraceError('INVALID_CONFIG', 'the model would be written over by what is made of it', {
      value: file,
      advice: 'Name another folder with --out',
    });
  if (force === true || there.length === 0) return;
  throw new MillraceError('INVALID_CONFIG', 'the folder has files that would be written over', {
    value: `${there.join(', ')} in ${out}`,
    allowed: 'a folder without them, or --force',
    advice: 'Name another folder with --out',
  });
}

const SAVED_MIN = 1 / 3;

/** A model that shares its first layer only compiles and is right: nobody should learn from a bill that it is all. */
function warnOfLittle({ stderr }: CliContext, { given, candidate }: Multiplications): void {
  if (given === 0 || candidate / given <= 1 - SAVED_MIN) return;
  stderr.write(
    'millrace: warning: less than a third of the multiplications is shared: whatever follows the first layer that reads candidates runs once per candidate. Train those layers with a mask to share more: docs/models.md\n',
  );
}

function describe(report: Report): string {
  const { files, nodes, artefact, multiplications, usesTiles, verified, throughput } = report;
  const rows = throughput?.map(
    ({ candidates, naive, copies, shared, candidate }) =>
      `  ${String(candidates).padStart(10)} ${[naive, copies, shared, candidate].map((qps) => qps.toFixed(0).padStart(9)).join(' ')} ${(shared / naive).toFixed(1).padStart(10)} ×`,
  );
  return [
    `request side: ${nodes.request} nodes once per request, ${nodes.candidate} per candidate (given: ${nodes.given} per candidate)`,
    multiplicationsText(multiplications),
    `artefact: ${artefact.length} tensors${usesTiles ? '; candidates lie in tiles' : ''}`,
    `the same scores on ${verified.batches} made-up batches (largest difference ${verified.difference.toExponential(1)} of the largest score)`,
    twoGraphsText(verified.twoGraphs),
    ...(rows === undefined
      ? []
      : [
          'requests/s, one thread:',
          '  candidates     given    copies    shared  artefact  shared/given',
          ...rows,
        ]),
    ...files.map((file) => `written: ${file}`),
    '',
  ].join('\n');
}

export function twoGraphsText({ sameBits, difference }: Report['verified']['twoGraphs']): string {
  return sameBits
    ? 'the two graphs give the same bits as the one'
    : `the two graphs give the same scores as the one, not the same bits (largest difference ${difference.toExponential(1)} of the largest score)`;
}

/** `multiplications per candidate: 12 k of 21 k are left (60 %)` */
function multiplicationsText({ given, candidate }: Multiplications): string {
  const share = given === 0 ? 100 : (100 * candidate) / given;
  return `multiplications per candidate: ${thousands(candidate)} of ${thousands(given)} are left (${share.toFixed(0)} %)`;
}

function thousands(count: number): string {
  if (count < 1_000) return count.toFixed(0);
  return count < 10_000 ? `${(count / 1_000).toFixed(1)} k` : `${(count / 1_000).toFixed(0)} k`;
}

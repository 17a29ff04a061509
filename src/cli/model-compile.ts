import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Command } from 'commander';
import { MillraceError } from '../core/errors.ts';
import { seededRandom } from '../core/random/seeded-random.ts';
import type { OnnxGraph } from '../inference/onnx-file/graph.ts';
import { readGraph } from '../inference/onnx-file/read-graph.ts';
import { writeGraph } from '../inference/onnx-file/write-graph.ts';
import type { InputGroups } from '../inference/rocs/compile.ts';
import { type Forms, openForms } from '../inference/rocs/forms.ts';
import { measureForms, type Throughput } from '../inference/rocs/throughput.ts';
import { type Verified, verifyForms } from '../inference/rocs/verify.ts';
import type { CliContext } from './context.ts';

interface CompileFlags {
  requestInputs: string;
  candidateInputs: string;
  between?: string[];
  out: string;
  unmasked?: boolean;
  measure: boolean;
  json?: boolean;
}

/** What was written, and what was found out on the way. */
interface Report {
  files: string[];
  nodes: { given: number; request: number; candidate: number };
  /** Bytes of one request's artefact; sizes that a call decides count as 16. */
  artefact: string[];
  usesTiles: boolean;
  verified: Verified;
  throughput?: Throughput[];
}

/** `millrace model compile <model.onnx>`: a model whose request side runs once per request. */
export function modelCompileCommand(context: CliContext): Command {
  return new Command('compile')
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
    .option('--no-measure', 'do not measure how many requests a second each form runs')
    .option('--json', 'print the report as one JSON object')
    .addHelpText(
      'after',
      `
Writes, from one set of weights:
  model.onnx      one graph: request inputs [requests, …], candidate inputs [candidates, …], request_index [candidates]
  request.onnx    what of it follows from the request: its outputs are the request artefact
  candidate.onnx  the rest: the artefact, candidates and request_index in, scores out
Where candidates look at a request's sequence (attention), keys and values are never copied for each of them: candidates lie in tiles of one
request, and the graph has three more inputs that say how (tile_candidates, tile_request, candidate_slot).

Before anything is written the compiled model is held against the given one on made-up batches: the same scores to 1e-5, the two graphs the same
bits as the one, no candidate that changes another's score. A node that would let one candidate reach another is refused by its name.

Exit code: 0 written, 2 refused.

Examples:
  millrace model compile ranker.onnx --request-inputs user,history,history_length --candidate-inputs item --out build
  millrace model compile ranker.onnx --request-inputs user --candidate-inputs item --unmasked --json`,
    )
    .action((file: string, flags: CompileFlags) => compile(context, file, flags));
}

async function compile(context: CliContext, file: string, flags: CompileFlags): Promise<void> {
  const graph = readGraph(await readFile(file).catch((cause: unknown) => unreadable(file, cause)));
  const groups = [flags.requestInputs, ...(flags.between ?? []), flags.candidateInputs].map(namesIn);
  checkNames(graph, groups);
  const forms = await openForms(graph, groups, { strict: flags.unmasked !== true });
  try {
    const random = seededRandom(1).stream('model-compile');
    const verified = await verifyForms(forms, graph, groups, random);
    const throughput = flags.measure
      ? await measureForms(forms, graph, groups, { random, clock: context.clock })
      : undefined;
    const files = await write(forms, flags.out);
    const report = reportOf(graph, forms, files, verified, throughput);
    context.stdout.write(flags.json === true ? `${JSON.stringify(report)}\n` : describe(report));
  } finally {
    await forms.close();
  }
}

function unreadable(file: string, cause: unknown): never {
  throw new MillraceError('INVALID_CONFIG', 'the model cannot be read', {
    value: file,
    advice: cause instanceof Error ? cause.message : String(cause),
    cause,
  });
}

function namesIn(text: string): string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

function checkNames({ inputs }: OnnxGraph, groups: InputGroups): void {
  const known = inputs.map(({ name }) => name);
  const unknown = groups.flat().find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new MillraceError('INVALID_CONFIG', 'the model has no such input', {
    value: unknown,
    allowed: known.join(', '),
  });
}

async function write({ compiled, sides }: Forms, folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const graphs = {
    'model.onnx': compiled.graph,
    'request.onnx': sides.request,
    'candidate.onnx': sides.candidate,
  };
  const files: string[] = [];
  for (const [name, graph] of Object.entries(graphs)) {
    const path = join(folder, name);
    await writeFile(path, writeGraph(graph));
    files.push(path);
  }
  return files;
}

function reportOf(
  graph: OnnxGraph,
  { compiled, sides }: Forms,
  files: string[],
  verified: Verified,
  throughput: Throughput[] | undefined,
): Report {
  return {
    files,
    nodes: {
      given: graph.nodes.length,
      request: sides.request.nodes.length,
      candidate: sides.candidate.nodes.length,
    },
    artefact: [...sides.artefact],
    usesTiles: compiled.usesTiles,
    verified,
    ...(throughput === undefined ? {} : { throughput }),
  };
}

function describe({ files, nodes, artefact, usesTiles, verified, throughput }: Report): string {
  const rows = throughput?.map(
    ({ candidates, naive, copies, shared, candidate }) =>
      `  ${String(candidates).padStart(10)} ${[naive, copies, shared, candidate].map((qps) => qps.toFixed(0).padStart(9)).join(' ')} ${(shared / naive).toFixed(1).padStart(10)} ×`,
  );
  return [
    `request side: ${nodes.request} nodes once per request, ${nodes.candidate} per candidate (given: ${nodes.given} per candidate)`,
    `artefact: ${artefact.length} tensors${usesTiles ? '; candidates lie in tiles' : ''}`,
    `the same scores on ${verified.batches} made-up batches (largest difference ${verified.difference.toExponential(1)} of the largest score)`,
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

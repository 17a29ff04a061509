import { seededRandom } from '../core/random/seeded-random.ts';
import type { OnnxGraph } from '../inference/onnx-file/graph.ts';
import { writeGraph } from '../inference/onnx-file/write-graph.ts';
import { type Forms, openForms } from '../inference/rocs/forms.ts';
import { countMultiplications, type Multiplications } from '../inference/rocs/multiplications.ts';
import { measureForms, type Throughput } from '../inference/rocs/throughput.ts';
import { verifyForms } from '../inference/rocs/verify.ts';
import type { Clock } from '../ports/clock.ts';
import { readOnnxModel } from './onnx-model.ts';

export interface CompileJob {
  readonly kind: 'compile';
  readonly file: string;
  /** Names of inputs: of the request, of groups between, of the candidates. */
  readonly groups: readonly (readonly string[])[];
  readonly unmasked: boolean;
  /** How many requests a second each form runs. */
  readonly measure: boolean;
}

export interface CompileFindings {
  nodes: { given: number; request: number; candidate: number };
  /** Bytes of one request's artefact; sizes that a call decides count as 16. */
  artefact: string[];
  /** Per candidate. */
  multiplications: Multiplications;
  usesTiles: boolean;
  verified: Awaited<ReturnType<typeof verifyForms>>;
  throughput?: Throughput[];
}

export interface CompiledModel {
  /** By the names of their files. */
  readonly graphs: ReadonlyMap<string, Uint8Array>;
  readonly found: CompileFindings;
}

export const COMPILED_FILES = ['model.onnx', 'request.onnx', 'candidate.onnx'] as const;

/** @throws MillraceError INVALID_MODEL what the model is refused for */
export async function compiledModel(
  { file, groups, unmasked, measure }: CompileJob,
  clock: Clock,
): Promise<CompiledModel> {
  const graph = readOnnxModel(file);
  const forms = await openForms(graph, groups, { strict: !unmasked });
  try {
    const random = seededRandom(1).stream('model-compile');
    const verified = await verifyForms(forms, graph, groups, random);
    const multiplications = await countMultiplications(forms, graph, groups, random);
    const throughput = measure ? await measureForms(forms, graph, groups, { random, clock }) : undefined;
    const found = {
      ...shapeOf(graph, forms),
      ...{ verified, multiplications },
      ...(throughput === undefined ? {} : { throughput }),
    };
    return { graphs: graphsOf(forms), found };
  } finally {
    await forms.close();
  }
}

function graphsOf({ compiled, sides }: Forms): Map<string, Uint8Array> {
  const graphs = [compiled.graph, sides.request, sides.candidate] as const;
  return new Map(COMPILED_FILES.map((name, n) => [name, writeGraph(graphs[n] ?? compiled.graph)]));
}

function shapeOf(
  graph: OnnxGraph,
  { compiled, sides }: Forms,
): Pick<CompileFindings, 'nodes' | 'artefact' | 'usesTiles'> {
  return {
    nodes: {
      given: graph.nodes.length,
      request: sides.request.nodes.length,
      candidate: sides.candidate.nodes.length,
    },
    artefact: [...sides.artefact],
    usesTiles: compiled.usesTiles,
  };
}

import { MillraceError } from '../../core/errors.ts';
import type {
  BatchResult,
  ItemResult,
  ItemScores,
  ItemTableUse,
  LoadedModel,
  ScoreItem,
} from '../../ports/accelerator.ts';
import type { SourcedInput } from '../../ports/feature-source.ts';
import { bestCandidates } from './best-candidates.ts';
import { itemOfStage, type StageInputs } from './chosen-candidates.ts';

/** A model of a cascade, and what it takes of a request. */
export interface LoadedStage {
  model: LoadedModel;
  inputs: StageInputs;
  /** The best of its candidates that go on to the next stage; all of them after the last. */
  keep: number;
}

/** An item on its way through the stages. */
interface Journey {
  item: ScoreItem;
  /** Places of the candidates that the next stage scores; undefined: all. */
  places: Uint32Array | undefined;
  scores: ItemScores | undefined;
  failure: Extract<ItemResult, { status: 'failed' }> | undefined;
}

type Measured = Pick<BatchResult, 'computeMs' | 'bytesMoved'>;

/**
 * Models one after another: each scores the candidates that the one before it kept. To the rest of the system it is its last model; a batch goes
 * through a stage as a whole, so that requests share its calls.
 */
export class CascadeModel implements LoadedModel {
  readonly family: string;
  readonly version: string;
  readonly variant: LoadedModel['variant'];
  readonly kernels?: readonly string[];
  readonly refusedKernels?: ReadonlyMap<string, string>;
  readonly sources?: readonly SourcedInput[];
  readonly #stages: readonly LoadedStage[];
  readonly #running = new Set<Promise<unknown>>();
  #unloading: Promise<void> | undefined;

  /** @param stages the last of them is the version that requests name */
  constructor(stages: readonly LoadedStage[]) {
    const model = stages.at(-1)?.model;
    if (model === undefined) throw new RangeError('a cascade has no model');
    this.family = model.family;
    this.version = model.version;
    this.variant = model.variant;
    if (model.kernels !== undefined) this.kernels = model.kernels;
    if (model.refusedKernels !== undefined) this.refusedKernels = model.refusedKernels;
    if (model.sources !== undefined) this.sources = model.sources;
    this.#stages = stages;
  }

  /** @throws MillraceError CLOSED once it is unloaded; MODEL_FAILED */
  async run(
    items: readonly ScoreItem[],
    kernel: string,
    memory?: string,
    deadlineMs?: number,
  ): Promise<BatchResult> {
    if (this.#unloading !== undefined)
      throw new MillraceError('CLOSED', 'the model is unloaded', { value: `${this.family}@${this.version}` });
    const run = this.#runStages(items, kernel, memory, deadlineMs);
    this.#running.add(run);
    try {
      return await run;
    } finally {
      this.#running.delete(run);
    }
  }

  async #runStages(
    items: readonly ScoreItem[],
    kernel: string,
    memory: string | undefined,
    deadlineMs: number | undefined,
  ): Promise<BatchResult> {
    const journeys = items.map(
      (item): Journey => ({ item, places: undefined, scores: undefined, failure: undefined }),
    );
    const sum: Measured = { computeMs: 0, bytesMoved: 0 };
    for (const [stage, { model, inputs, keep }] of this.#stages.entries()) {
      const going = journeys.filter(({ failure }) => failure === undefined);
      if (going.length === 0) break;
      const entering = going.map(({ item, places }) => itemOfStage(item, inputs, places));
      const isLast = stage === this.#stages.length - 1;
      const own = isLast ? kernel : kernelOf(model, kernel);
      const batch = await model.run(entering, own, memory, deadlineMs);
      sum.computeMs += batch.computeMs;
      sum.bytesMoved += batch.bytesMoved;
      for (const [i, journey] of going.entries()) pass(journey, stage, batch.items[i], keep);
    }
    return { items: journeys.map(ended), ...sum };
  }

  /** Of each stage for what it gets. */
  predictMs(requests: number, candidates: number): number {
    let left = candidates;
    let sum = 0;
    for (const { model, keep } of this.#stages) {
      sum += model.predictMs(requests, left);
      left = Math.min(left, keep * requests);
    }
    return sum;
  }

  /** Waits for the batches that run: each goes through all stages. */
  unload(): Promise<void> {
    this.#unloading ??= this.#unload();
    return this.#unloading;
  }

  async #unload(): Promise<void> {
    await Promise.allSettled(this.#running);
    await Promise.all(this.#stages.map(({ model }) => model.unload()));
  }
}

/** The kernel that the policy chose is the last model's; one before it that lacks it runs on its own first one. */
function kernelOf({ kernels }: LoadedModel, wanted: string): string {
  return kernels === undefined || kernels.includes(wanted) ? wanted : (kernels[0] ?? wanted);
}

function pass(journey: Journey, stage: number, result: ItemResult | undefined, keep: number): void {
  if (result === undefined) throw new RangeError('a batch has fewer results than items');
  if (result.status === 'failed') {
    journey.failure = result;
    return;
  }
  const { places, scores } = journey;
  journey.scores = scores === undefined ? first(result.scores) : merged(scores, result.scores, stage, places);
  const best = bestCandidates(result.scores.scores, keep);
  journey.places = places === undefined ? best : best.map((place) => places[place] ?? 0);
}

function ended({ scores, failure }: Journey): ItemResult {
  if (failure !== undefined) return failure;
  if (scores === undefined) throw new RangeError('an item went through no stage');
  return { status: 'scored', scores };
}

function first(scores: ItemScores): ItemScores {
  return { ...scores, stages: new Uint8Array(scores.scores.length) };
}

/** Takes the scores of a later stage in at their places. A head that only one of the stages has is NaN where the other scored. */
function merged(
  earlier: ItemScores,
  later: ItemScores,
  stage: number,
  places: Uint32Array | undefined,
): ItemScores {
  const count = earlier.scores.length;
  const at = places ?? Uint32Array.from({ length: count }, (_, place) => place);
  const put = (into: Float32Array, values: Float32Array): Float32Array => {
    at.forEach((place, i) => {
      into[place] = values[i] ?? Number.NaN;
    });
    return into;
  };
  const valuesOf = (name: string): Float32Array =>
    earlier.heads.find((head) => head.name === name)?.values.slice() ??
    new Float32Array(count).fill(Number.NaN);
  const stages = earlier.stages?.slice() ?? new Uint8Array(count);
  for (const place of at) stages[place] = stage;
  const use = bothTables(earlier.fromTables, later.fromTables);
  return {
    ...(use === undefined ? {} : { fromTables: use }),
    heads: later.heads.map(({ name, values }) => ({ name, values: put(valuesOf(name), values) })),
    scores: put(earlier.scores.slice(), later.scores),
    stages,
  };
}

function bothTables(
  earlier: ItemTableUse | undefined,
  later: ItemTableUse | undefined,
): ItemTableUse | undefined {
  if (earlier === undefined || later === undefined) return earlier ?? later;
  return {
    tables: [...new Set([...earlier.tables, ...later.tables])],
    unknownIds: Math.max(earlier.unknownIds, later.unknownIds),
  };
}

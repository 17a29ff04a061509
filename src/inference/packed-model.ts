import { listNames, MillraceError } from '../core/errors.ts';
import type { Variant } from '../core/request/family.ts';
import type {
  AcceleratorCapabilities,
  BatchResult,
  ItemResult,
  LoadedModel,
  ScoreItem,
} from '../ports/accelerator.ts';
import type { SourcedInput } from '../ports/feature-source.ts';
import { batchShape } from './batch-shape.ts';
import { tableUse } from './candidate-rows.ts';
import { type CheckedItem, checkItem } from './check-item.ts';
import type { RunKernel } from './graph-call.ts';
import { type InputLayout, inputLayout } from './input-layout.ts';
import { emptyResult, failed, itemResult } from './item-scores.ts';
import type { VersionTables } from './items/version-tables.ts';
import type { SlabArena } from './memory/slab-arena.ts';
import { feedsOf, packBatch, planBatch, unpackHeads } from './pack.ts';
import { batchMs } from './repository/cost.ts';
import type { ModelVersion } from './repository/model-version.ts';

export interface PackedModelParts {
  version: ModelVersion;
  tables: VersionTables;
  capabilities: AcceleratorCapabilities;
  runGraph: RunKernel;
  /** Kernels of the backend that cannot run this version, and why. */
  refusedKernels?: ReadonlyMap<string, string>;
  arena: SlabArena;
  /** Once no call runs. */
  onUnload: () => Promise<void>;
}

/** An item that goes into a call, and its place in the batch. */
interface Entry {
  position: number;
  item: ScoreItem;
  checked: CheckedItem;
}

interface Call extends Omit<BatchResult, 'items'> {
  /** By position of the entries. */
  results: ItemResult[];
}

interface How {
  kernel: string;
  deadlineMs: number | undefined;
}

/** A version whose batches are packed into one call of its graph each. */
export class PackedModel implements LoadedModel {
  readonly family: string;
  readonly version: string;
  readonly variant: Variant;
  readonly kernels: readonly string[];
  readonly refusedKernels: ReadonlyMap<string, string>;
  readonly sources: readonly SourcedInput[];
  readonly #parts: PackedModelParts;
  readonly #layout: InputLayout;
  readonly #running = new Set<Promise<unknown>>();
  #unloading: Promise<void> | undefined;

  constructor(parts: PackedModelParts) {
    this.#parts = parts;
    this.#layout = inputLayout(parts.version);
    this.family = parts.version.family;
    this.version = parts.version.version;
    this.variant = parts.version.variant;
    this.sources = parts.version.sources;
    this.refusedKernels = parts.refusedKernels ?? new Map();
    this.kernels = parts.capabilities.kernels.filter((kernel) => !this.refusedKernels.has(kernel));
  }

  async run(
    items: readonly ScoreItem[],
    kernel: string,
    _memory?: string,
    deadlineMs?: number,
  ): Promise<BatchResult> {
    if (this.#unloading !== undefined) {
      throw new MillraceError('CLOSED', 'the model is unloaded', { value: `${this.family}@${this.version}` });
    }
    this.#checkKernel(kernel);
    const run = this.#runBatch(items, { kernel, deadlineMs });
    this.#running.add(run);
    try {
      return await run;
    } finally {
      this.#running.delete(run);
    }
  }

  predictMs(requests: number, candidates: number): number {
    const { cost, typicalRows } = this.#parts.version;
    return batchMs(cost, typicalRows, requests, candidates);
  }

  #checkKernel(kernel: string): void {
    if (this.kernels.includes(kernel)) return;
    const why = this.refusedKernels.get(kernel);
    const what = `${this.family}@${this.version} cannot be run by that kernel: ${why}`;
    throw new MillraceError(
      'MODEL_FAILED',
      why === undefined ? `${this.#parts.capabilities.backend} has no such kernel` : what,
      { value: kernel, allowed: listNames(this.kernels) },
    );
  }

  /** Waits for the batches that run. */
  unload(): Promise<void> {
    this.#unloading ??= this.#unload();
    return this.#unloading;
  }

  async #unload(): Promise<void> {
    await Promise.allSettled(this.#running);
    await this.#parts.onUnload();
  }

  async #runBatch(items: readonly ScoreItem[], how: How): Promise<BatchResult> {
    const results: ItemResult[] = [];
    const entries: Entry[] = [];
    items.forEach((item, position) => {
      if (item.scoreLimit === 0) results[position] = emptyResult(this.#parts.version);
      else this.#admit(item, position, results, entries);
    });
    if (entries.length === 0) return { items: results, computeMs: 0, bytesMoved: 0 };
    const call = await this.#callOrSplit(entries, how, entries.length === items.length);
    entries.forEach(({ position }, i) => {
      const result = call.results[i];
      if (result !== undefined) results[position] = result;
    });
    const { results: _, ...measured } = call;
    return { items: results, ...measured };
  }

  #admit(item: ScoreItem, position: number, results: ItemResult[], entries: Entry[]): void {
    try {
      entries.push({ position, item, checked: checkItem(this.#layout, item, this.#parts.tables) });
    } catch (error) {
      results[position] = failed(error);
    }
  }

  /**
   * One call for all; where that fails, one call each, so that an item that the graph cannot take fails alone.
   * @throws MillraceError MODEL_FAILED where every call failed and `whole`: no item of the batch has another result
   */
  async #callOrSplit(entries: readonly Entry[], how: How, whole: boolean): Promise<Call> {
    try {
      return await this.#call(entries, how);
    } catch (error) {
      const results = entries.length === 1 ? [failedAlone(error)] : undefined;
      const call =
        results === undefined ? await this.#callEach(entries, how) : { results, computeMs: 0, bytesMoved: 0 };
      if (whole && call.results.every(isModelFailure)) throw error;
      return call;
    }
  }

  async #callEach(entries: readonly Entry[], how: How): Promise<Call> {
    const sum: Call = { results: [], computeMs: 0, bytesMoved: 0 };
    for (const entry of entries) {
      try {
        const call = await this.#call([entry], how);
        sum.results.push(...call.results);
        sum.computeMs += call.computeMs;
        sum.bytesMoved += call.bytesMoved;
      } catch (error) {
        sum.results.push(failedAlone(error));
      }
    }
    return sum;
  }

  /** Packs before its first await, so that it overlaps with a call that runs. @throws MillraceError MODEL_FAILED */
  async #call(entries: readonly Entry[], { kernel, deadlineMs }: How): Promise<Call> {
    const { version, runGraph, arena } = this.#parts;
    const checked = entries.map((entry) => entry.checked);
    const plan = planBatch(this.#layout, version.heads, checked);
    const slab = arena.lease(plan.bytes);
    packBatch(this.#layout, checked, plan, slab);
    const answer = await runGraph({ slab, feeds: feedsOf(plan), outputs: plan.outputs, deadlineMs }, kernel);
    if (answer.kind !== 'ran') {
      if (answer.slab !== undefined) arena.release(answer.slab);
      const error = new MillraceError(
        'MODEL_FAILED',
        `${version.family}@${version.version}: ${answer.message}`,
      );
      if (answer.kind === 'failed') throw error;
      return { results: entries.map(() => failed(error)), computeMs: 0, bytesMoved: 0 };
    }
    const heads = unpackHeads(checked, plan, answer.slab);
    arena.release(answer.slab);
    const results = entries.map(({ item, checked: { count, candidate } }, i) =>
      itemResult(version, heads[i] ?? [], item.hints, count, tableUse(candidate)),
    );
    const { computeMs, density } = answer;
    const measured = { computeMs, bytesMoved: plan.bytes, shape: batchShape(this.#layout, checked) };
    return { results, ...measured, ...(density === undefined ? {} : { density }) };
  }
}

function failedAlone(error: unknown): ItemResult {
  const result = failed(error);
  return isModelFailure(result) ? { ...result, alone: true } : result;
}

function isModelFailure(result: ItemResult): result is Extract<ItemResult, { status: 'failed' }> {
  return (
    result.status === 'failed' &&
    result.error instanceof MillraceError &&
    result.error.code === 'MODEL_FAILED'
  );
}

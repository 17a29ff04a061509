import { MillraceError } from '../../core/errors.ts';
import type { Variant } from '../../core/request/family.ts';
import type { BatchResult, ItemResult, LoadedModel, ScoreItem } from '../../ports/accelerator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { SourcedInput } from '../../ports/feature-source.ts';
import type { RandomStream } from '../../ports/random.ts';
import { batchShape } from '../batch-shape.ts';
import { tableUse } from '../candidate-rows.ts';
import { type CheckedItem, checkItem } from '../check-item.ts';
import { type InputLayout, inputLayout } from '../input-layout.ts';
import { emptyResult, failed, itemResult } from '../item-scores.ts';
import type { VersionTables } from '../items/version-tables.ts';
import type { ModelVersion } from '../repository/model-version.ts';
import { equalScores, pseudoScores, requestDensity, type StandIns } from './item-traits.ts';
import type { ServiceProfile } from './profiles.ts';
import { jitterFactor, meanServiceMs } from './service-time.ts';

export interface SimulatedModelParts {
  version: ModelVersion;
  tables: VersionTables;
  profile: ServiceProfile;
  clock: Clock;
  random: RandomStream;
  slowdown(memory: string): number;
  /** Runs the work when the device is free. */
  inTurn: <T>(work: () => Promise<T>) => Promise<T>;
  inner: LoadedModel | undefined;
  standIns: StandIns;
}

export class SimulatedModel implements LoadedModel {
  readonly family: string;
  readonly version: string;
  readonly variant: Variant;
  readonly sources: readonly SourcedInput[];
  readonly #parts: SimulatedModelParts;
  readonly #layout: InputLayout;
  #unloaded = false;

  constructor(parts: SimulatedModelParts) {
    this.#parts = parts;
    this.#layout = inputLayout(parts.version);
    this.family = parts.version.family;
    this.version = parts.version.version;
    this.variant = parts.version.variant;
    this.sources = parts.version.sources;
  }

  /** @param memory a memory domain of the profile; its first one where absent */
  async run(items: readonly ScoreItem[], kernel: string, memory?: string): Promise<BatchResult> {
    const { profile, inTurn } = this.#parts;
    const domain = memory ?? Object.keys(profile.memories)[0] ?? '';
    if (this.#unloaded)
      throw new MillraceError('CLOSED', 'the model is unloaded', { value: `${this.family}@${this.version}` });
    if (!Object.hasOwn(profile.kernels, kernel) || !Object.hasOwn(profile.memories, domain)) {
      throw new MillraceError('MODEL_FAILED', `${profile.accelerator} has no such kernel or memory`, {
        value: `${kernel} on ${domain}`,
        allowed: `${Object.keys(profile.kernels).join(', ')} on ${Object.keys(profile.memories).join(', ')}`,
      });
    }
    return inTurn(() => this.#runBatch(items, kernel, domain));
  }

  /** With the dense kernel (or the only one) in the first memory, without jitter. */
  predictMs(requests: number, candidates: number): number {
    const { profile } = this.#parts;
    const [kernel = '', memory = ''] = [Object.keys(profile.kernels)[0], Object.keys(profile.memories)[0]];
    return meanServiceMs(profile, { requests, candidates, kernel, memory, density: 1 });
  }

  async unload(): Promise<void> {
    this.#unloaded = true;
    await this.#parts.inTurn(async () => this.#parts.inner?.unload());
  }

  async #runBatch(items: readonly ScoreItem[], kernel: string, memory: string): Promise<BatchResult> {
    const { profile, random, slowdown, inner } = this.#parts;
    const scored = items.map((item) => this.#score(item));
    const checked = scored.flatMap((one) => (one.checked === undefined ? [] : [one.checked]));
    if (checked.length === 0) return { items: scored.map((one) => one.result), computeMs: 0, bytesMoved: 0 };
    const shape = {
      requests: checked.length,
      candidates: checked.reduce((sum, { count }) => sum + count, 0),
      kernel,
      memory,
      density: requestDensity(this.#layout, checked),
    };
    const serviceMs =
      meanServiceMs(profile, shape) * jitterFactor(profile.jitterSigma, random) * slowdown(memory);
    const [real] = await Promise.all([inner?.run(items, 'dense'), this.#wait(serviceMs)]);
    return {
      items: real?.items ?? scored.map((one) => one.result),
      computeMs: serviceMs,
      shape: batchShape(this.#layout, checked),
      bytesMoved: checked.reduce(
        (sum, item) => sum + itemBytes(this.#layout, item, this.#parts.version.heads.length),
        0,
      ),
    };
  }

  /** The result without a real model; `checked` where the item takes part in the batch. */
  #score(item: ScoreItem): { result: ItemResult; checked?: CheckedItem } {
    const { version, inner, standIns } = this.#parts;
    if (item.scoreLimit === 0) return { result: emptyResult(version) };
    try {
      const checked = checkItem(this.#layout, item, this.#parts.tables);
      // The inner model's results are used; hashing the candidates would be for nothing.
      if (inner !== undefined) return { result: emptyResult(version), checked };
      const heads = version.heads.map(({ name }) =>
        standIns === 'alike' ? equalScores(checked.count) : pseudoScores(this.#layout, checked, name),
      );
      return {
        result: itemResult(version, heads, item.hints, checked.count, tableUse(checked.candidate)),
        checked,
      };
    } catch (error) {
      return { result: failed(error) };
    }
  }

  #wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#parts.clock.after(delayMs, resolve);
    });
  }
}

function itemBytes(layout: InputLayout, item: CheckedItem, heads: number): number {
  const request = item.request.reduce((sum, contents) => sum + contents.length, 0);
  const candidate = layout.candidate.reduce((sum, { rowBytes }) => sum + rowBytes * item.count, 0);
  return request + candidate + heads * item.count * 4;
}

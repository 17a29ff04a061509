import { MillraceError } from '../core/errors.ts';
import type { Accelerator, ItemResult, ItemTableUse, LoadedModel, ScoreItem } from '../ports/accelerator.ts';
import { putRows, rowsFromTable, tableUse } from './candidate-rows.ts';
import { type InputLayout, inputLayout } from './input-layout.ts';
import { emptyResult, failed } from './item-scores.ts';
import type { VersionTables } from './items/version-tables.ts';
import type { ModelVersion } from './repository/model-version.ts';
import type { ModelRepository } from './repository/open-repository.ts';

const CONSTANT_SCORE = 0.5;

/**
 * Answers at once with the same score for every candidate, reads no tensor and runs any kernel: what is left of a pipeline's time is the pipeline's own.
 * Rows from item tables are found and packed as for a real model: that, too, is the pipeline's.
 */
export function createImmediateAccelerator({ repository }: { repository: ModelRepository }): Accelerator {
  return {
    capabilities: {
      backend: 'immediate',
      simulated: true,
      kernels: ['dense', 'sparse', 'attention', 'bias-fused'],
      memories: ['hbm', 'l2', 'host'],
      datatypes: ['FP32', 'INT64'],
    },
    failed: new Promise(() => undefined),
    async load(family, version) {
      const wanted = repository.version(family, version);
      return immediateModel(wanted, await repository.itemTables(wanted));
    },
    async close() {},
  };
}

function immediateModel(version: ModelVersion, tables: VersionTables): LoadedModel {
  let unloaded = false;
  const constants = new Constants();
  const layout = inputLayout(version);
  const rows = new TableRows(layout, tables);
  return {
    family: version.family,
    version: version.version,
    variant: version.variant,
    sources: version.sources,
    async run(items) {
      if (unloaded) throw new MillraceError('CLOSED', 'the model is unloaded');
      return {
        items: items.map((item) => constantResult(version, item, constants, rows)),
        computeMs: 0,
        bytesMoved: 0,
      };
    },
    predictMs: () => 0,
    async unload() {
      unloaded = true;
    },
  };
}

function constantResult(
  version: ModelVersion,
  item: ScoreItem,
  constants: Constants,
  rows: TableRows,
): ItemResult {
  const { scoreLimit } = item;
  if (scoreLimit === 0) return emptyResult(version);
  const scores = constants.take(scoreLimit);
  let fromTables: ItemTableUse | undefined;
  try {
    fromTables = rows.pack(item);
  } catch (error) {
    return failed(error);
  }
  return {
    status: 'scored',
    scores: {
      ...(fromTables === undefined ? {} : { fromTables }),
      heads: version.heads.map(({ name }) => ({ name, values: scores })),
      scores,
    },
  };
}

/** Packs what of an item comes from tables into memory that nobody reads. */
class TableRows {
  readonly #layout: InputLayout;
  readonly #tables: VersionTables;
  #slab = new ArrayBuffer(0);

  constructor(layout: InputLayout, tables: VersionTables) {
    this.#layout = layout;
    this.#tables = tables;
  }

  /** @throws MillraceError UNKNOWN_ITEM, INVALID_TENSOR */
  pack({ candidateTensors, candidateIds, scoreLimit }: ScoreItem): ItemTableUse | undefined {
    const found = this.#layout.candidate.flatMap(({ name, table, rowBytes }) => {
      if (table === undefined || candidateTensors.some((tensor) => tensor.name === name)) return [];
      const rows = rowsFromTable(table, candidateIds, this.#tables, scoreLimit);
      const bytes = rowBytes * scoreLimit;
      if (this.#slab.byteLength < bytes) this.#slab = new ArrayBuffer(2 * bytes);
      putRows(this.#slab, 0, rows, rowBytes);
      return [rows];
    });
    return tableUse(found);
  }
}

/** As many constant scores as were ever asked for, once: results share them. */
class Constants {
  #values = new Float32Array(0);

  take(count: number): Float32Array {
    if (this.#values.length < count) this.#values = new Float32Array(count * 2).fill(CONSTANT_SCORE);
    return this.#values.subarray(0, count);
  }
}

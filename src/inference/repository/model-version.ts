import { type InputContract, parseModelName, type Variant } from '../../core/request/family.ts';
import type { CostModel } from '../../core/signals/cost-model.ts';
import type { SourcedInput } from '../../ports/feature-source.ts';
import { compileRankBy, type HintDefault, type RankBy } from '../rank-by.ts';
import type { ModelConfig } from './config.ts';
import { inputContracts } from './config.ts';
import { sourcedInput } from './sourced-input.ts';

export interface ModelHead {
  name: string;
  /** True where its values lie in [0, 1]. */
  probability: boolean;
  meaning: string;
}

export interface ModelLimits {
  candidatesMax: number;
  sequenceLengthMax: number;
  tensorBytesMax: number;
}

/** Names of the graph's inputs that say how candidates lie in tiles (docs of `millrace model compile`); made, never sent. */
export interface TileInputs {
  /** INT64 [tiles, slots]: the candidate in each slot. */
  candidates: string;
  /** INT64 [tiles]: the request of each. */
  requests: string;
  /** INT64 [candidates]: the slot of each. */
  slots: string;
}

/** A candidate input whose rows come from an item table where a request sends ids in their place. */
export interface TableInput {
  input: string;
  table: string;
  /** What becomes of an id that the table does not have: its default row stands in, or the request is refused. */
  unknown: 'default' | 'reject';
}

/** A version that scores before this one, and how many of its candidates go on. */
export interface CascadeStage {
  /** 0: the one that scores all candidates of a request. */
  place: number;
  family: string;
  version: string;
  keep: number;
}

/** One version of a model family, as its config and cost model say. */
export interface ModelVersion {
  family: string;
  version: string;
  variant: Variant;
  /** Trained on synthetic data; shown wherever its scores are. */
  synthetic: boolean;
  description: string;
  inputs: readonly InputContract[];
  tables: readonly TableInput[];
  /** Inputs whose rows a feature source has where a request does not send them. */
  sources: readonly SourcedInput[];
  /** Inputs that lay candidates out in tiles of one request; where the graph was compiled with attention. */
  tiles: TileInputs | undefined;
  /** First to last before this one; none where it scores all candidates itself. */
  cascade: readonly CascadeStage[];
  heads: readonly ModelHead[];
  hints: readonly HintDefault[];
  rankBy: RankBy;
  slaMs: number;
  /** Variants of a family whose targets are equal may replace each other. */
  calibrationTarget: string;
  limits: ModelLimits;
  /** Of one request alone, on one thread. */
  cost: CostModel;
  /** Rows of a sequence, where nothing is known of the request. */
  typicalRows: number;
  /** `sha256:<hex>` of the graph's bytes. */
  digest: string;
  files: { graph: string; golden: string; cost: string };
}

/** @throws MillraceError INVALID_MODEL where rankBy cannot be compiled. */
export function modelVersion(config: ModelConfig, cost: CostModel, typicalRows: number): ModelVersion {
  const heads = config.heads.map(({ name, probability, meaning }) => ({ name, probability, meaning }));
  return {
    family: config.family,
    version: String(config.version),
    variant: config.variant,
    synthetic: config.synthetic,
    description: config.description,
    inputs: inputContracts(config),
    tables: config.inputs.flatMap(({ name, table }) =>
      table === undefined ? [] : [{ input: name, table: table.name, unknown: table.unknown }],
    ),
    sources: config.inputs.flatMap((input) => sourcedInput(input) ?? []),
    tiles: config.tiles,
    cascade: config.cascade.map(({ model, keep }, place): CascadeStage => {
      const { family, version = '' } = parseModelName(model);
      return { place, family, version, keep };
    }),
    heads,
    hints: config.hints,
    rankBy: compileRankBy(
      config.rankBy,
      heads.map((head) => head.name),
      config.hints,
    ),
    slaMs: config.slaMs,
    calibrationTarget: config.calibrationTarget,
    limits: config.limits,
    cost,
    typicalRows,
    digest: config.model.digest,
    files: { graph: config.model.file, golden: config.golden, cost: config.cost },
  };
}

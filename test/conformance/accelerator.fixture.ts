import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ModelRepository, openRepository } from '../../src/inference/repository/open-repository.ts';
import type { ItemResult, ItemScores, ScoreItem } from '../../src/ports/accelerator.ts';
import { floatTensor, toyFiles, toyItem, toyRequest, writeVersion } from '../unit/inference/toy-model.ts';

/** A model family to run the suite on. */
export interface ModelFixture {
  name: string;
  family: string;
  version: string;
  /** One request; equal arguments give equal items. */
  item(seed: number, candidates: number, rows: number): ScoreItem;
  open(): Promise<ModelRepository>;
  close(): Promise<void>;
}

/** The model of a few lines that the tests bring along. */
export function toyFixture(): ModelFixture {
  let root: string | undefined;
  return {
    name: 'a toy model',
    family: 'toy',
    version: '1',
    item: (seed, candidates, rows) => toyItem(toyRequest(seed, candidates, rows)),
    async open() {
      root = await mkdtemp(join(tmpdir(), 'millrace-toy-'));
      await writeVersion(root, toyFiles());
      return openRepository(root);
    },
    async close() {
      if (root !== undefined) await rm(root, { recursive: true, force: true });
    },
  };
}

/** The committed ranker. */
export function rankerFixture(): ModelFixture {
  return {
    name: 'the committed ranker',
    family: 'ranker',
    version: '1',
    item: rankerItem,
    open: () => openRepository(join(import.meta.dirname, '../../models/repository')),
    async close() {},
  };
}

export function rankerItem(seed: number, candidates: number, rows: number): ScoreItem {
  const values = (count: number, salt: number): number[] =>
    Array.from({ length: count }, (_, i) => Math.sin(seed * 7.3 + salt * 3.1 + i * 1.7));
  return {
    requestTensors: [
      floatTensor('user', [64], values(64, 1)),
      floatTensor('history', [rows, 32], values(rows * 32, 2)),
    ],
    candidateTensors: [floatTensor('item', [candidates, 32], values(candidates * 32, 3))],
    hints: {},
    scoreLimit: candidates,
  };
}

/** A copy of the item whose first candidate has a NaN. */
export function withNaN(item: ScoreItem): ScoreItem {
  const candidateTensors = item.candidateTensors.map((tensor) => {
    const contents = Buffer.from(tensor.contents);
    contents.writeFloatLE(Number.NaN, 0);
    return { ...tensor, contents };
  });
  return { ...item, candidateTensors };
}

/** A copy of the item whose first request tensor lacks its last value. */
export function withCutTensor(item: ScoreItem): ScoreItem {
  const [first, ...rest] = item.requestTensors;
  if (first === undefined) throw new Error('the item has no request tensor');
  return { ...item, requestTensors: [{ ...first, contents: first.contents.subarray(4) }, ...rest] };
}

/** @throws the item's error where it failed */
export function scoresOf(result: ItemResult | undefined): ItemScores {
  if (result?.status === 'scored') return result.scores;
  throw result?.error ?? new Error('there is no result');
}

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createImmediateAccelerator } from '../../../src/inference/immediate.ts';
import { openRepository } from '../../../src/inference/repository/open-repository.ts';
import { scoresOf } from '../../conformance/accelerator.fixture.ts';
import { toyFiles, toyItem, toyRequest, writeVersion } from './toy-model.ts';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'millrace-immediate-'));
  await writeVersion(root, toyFiles());
});
afterAll(() => rm(root, { recursive: true, force: true }));

test('gives every candidate the same score, with any kernel, and reads no tensor', async () => {
  const accelerator = createImmediateAccelerator({ repository: await openRepository(root) });
  const model = await accelerator.load('toy', '1');
  const item = { ...toyItem(toyRequest(1, 2, 1)), requestTensors: [], candidateTensors: [], scoreLimit: 3 };
  for (const kernel of accelerator.capabilities.kernels) {
    const batch = await model.run([item], kernel);
    const { heads, scores } = scoresOf(batch.items[0]);
    expect([...scores]).toEqual([0.5, 0.5, 0.5]);
    expect(heads.map(({ name, values }) => [name, [...values]])).toEqual([
      ['click', [0.5, 0.5, 0.5]],
      ['match', [0.5, 0.5, 0.5]],
    ]);
    expect(batch.computeMs).toBe(0);
  }
});

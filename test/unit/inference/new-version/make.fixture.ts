import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../../src/adapters/system/clock.ts';
import {
  type MadeVersion,
  makeVersion,
  type VersionOptions,
} from '../../../../src/inference/new-version/make-version.ts';
import { placeVersion } from '../../../../src/inference/new-version/place-version.ts';
import { createOnnxCpuAccelerator } from '../../../../src/inference/onnx-cpu/accelerator.ts';
import type { OnnxGraph } from '../../../../src/inference/onnx-file/graph.ts';
import { writeGraph } from '../../../../src/inference/onnx-file/write-graph.ts';
import type { ModelVersion } from '../../../../src/inference/repository/model-version.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';
import type { LoadedModel } from '../../../../src/ports/accelerator.ts';

export type Said = Partial<
  Pick<VersionOptions, 'sizes' | 'outputs' | 'heads' | 'unmasked' | 'share' | 'seed'>
> & {
  requestInputs?: string[];
  candidateInputs?: string[];
  lengths?: Map<string, string>;
  words?: Partial<VersionOptions['words']>;
};

/** A version of the family `made`, measured as shortly as can be. */
export function made(graph: OnnxGraph, said: Said = {}): Promise<MadeVersion> {
  const { requestInputs, candidateInputs, lengths = new Map<string, string>(), words, ...rest } = said;
  const options: VersionOptions = {
    ...{ sizes: new Map(), outputs: undefined, heads: undefined, unmasked: false, share: true, seed: 1 },
    ...rest,
    inputs: { requestInputs, candidateInputs, lengths },
    measureMs: 1,
    requestBytesMax: 1_048_576,
    words: {
      ...{ family: 'made', version: 1, variant: 'baseline', synthetic: true, description: 'of a test' },
      ...{ slaMs: 50, candidatesMax: 128, rowsMax: 16, hints: [], rankBy: undefined },
      calibrationTarget: undefined,
      ...words,
    },
  };
  return makeVersion({ source: 'given.onnx', bytes: writeGraph(graph), graph }, options, {
    clock: systemClock(),
  });
}

/** What the repository says of it, once it has read, opened and run it as a worker does. */
export async function loaded({
  files,
}: Pick<MadeVersion, 'files'>): Promise<{ version: ModelVersion; model: LoadedModel }> {
  const root = mkdtempSync(join(tmpdir(), 'millrace-made-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  await placeVersion(root, { family: 'made', version: '1', files, replace: false }, () => Promise.resolve());
  const repository = await openRepository(root);
  const accelerator = createOnnxCpuAccelerator({ repository, clock: systemClock() });
  onTestFinished(() => accelerator.close());
  const model = await accelerator.load('made', '1');
  return { version: repository.version('made', '1'), model };
}

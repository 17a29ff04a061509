import { execFileSync } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { folderModelSource } from '../../../../src/adapters/model-source/folder.ts';
import { describeVersion } from '../../../../src/inference/repository/describe-version.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';

let models: string;
let place: string;

beforeEach(async () => {
  models = await mkdtemp(join(tmpdir(), 'millrace-describe-'));
  place = join(models, 'ranker/2');
  await cp('models/repository/ranker/2', place, { recursive: true });
});

afterEach(() => rm(models, { recursive: true, force: true }));

const described = () => describeVersion(folderModelSource(), place, new AbortController().signal);

describe('a version that is described to be published', () => {
  it('has the files that its config names, with their digests', async () => {
    expect(await described()).toMatchObject({
      family: 'ranker',
      version: '2',
      files: [
        { name: 'config.yaml' },
        { name: 'cost.json' },
        { name: 'golden.json' },
        { name: 'model.onnx' },
      ],
    });
  });

  it('is refused where its graph is not the one that its config means: every worker would', async () => {
    const graph = join(place, 'model.onnx');
    await writeFile(graph, (await readFile(graph)).subarray(0, 1_000));
    await expect(described()).rejects.toThrowError(/model.onnx is not the file that the config means/);
  });

  it('is refused at once where a file is a pipe that nobody writes to', async () => {
    const graph = join(place, 'model.onnx');
    await rm(graph);
    execFileSync('mkfifo', [graph]);
    await expect(described()).rejects.toThrowError(/model.onnx is not a file/);
    const repository = await openRepository(models);
    await expect(repository.readGraph(repository.version('ranker', '2'))).rejects.toThrowError(
      /model.onnx is not a file/,
    );
  });
});

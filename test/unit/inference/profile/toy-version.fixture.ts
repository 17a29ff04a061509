import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { ItemMaker } from '../../../../src/inference/profile/made-item.ts';
import { openRepository } from '../../../../src/inference/repository/open-repository.ts';
import { type ToyFiles, toyFiles, writeVersion } from '../toy-model.ts';

/** The toy of the tests as a repository that goes away with the test, and what makes requests for it. */
export async function toyVersion(change: (files: ToyFiles) => void = () => undefined) {
  const root = mkdtempSync(join(tmpdir(), 'millrace-profile-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const files = toyFiles();
  change(files);
  await writeVersion(root, files);
  const repository = await openRepository(root);
  const version = repository.families[0]?.versions[0];
  if (version === undefined) throw repository.refused[0]?.error ?? new Error('there is no version');
  const golden = await repository.readGolden(version);
  const items = new ItemMaker(version, golden, seededRandom(1).stream('items'));
  return { root, repository, version, golden, items };
}

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/adapters/system/clock.ts';
import { checkAsWorker, versionNumber } from '../../../src/cli/model-init-place.ts';
import { toyFiles, writeVersion } from '../inference/toy-model.ts';
import { temporaryFolder } from './temporary-folder.ts';

const context = { clock: systemClock() };
const TOY = { family: 'toy', version: '1' };

describe('the place of a version', () => {
  it('is checked by what a worker runs, golden cases too', async () => {
    const out = temporaryFolder().path('');
    const [good, bad] = [join(out, 'good'), join(out, 'bad')];
    await writeVersion(good, toyFiles());
    await checkAsWorker(context, good, { out, ...TOY });
    const files = toyFiles();
    for (const oneCase of files.golden.cases) oneCase.scores = oneCase.outputs.match;
    await writeVersion(bad, files);
    await expect(checkAsWorker(context, bad, { out, ...TOY })).rejects.toThrow(
      /golden case interleaved gives/,
    );
  });

  it.each<[string, string[], number | undefined, number]>([
    ['the first of a family', [], undefined, 1],
    ['the next of those that are there', ['1', '9', '10', 'old', '.11', '012'], undefined, 11],
    ['one that was named', ['1', '2'], 7, 7],
  ])('is %s', async (_, there, modelVersion, want) => {
    const out = temporaryFolder().path('models');
    for (const name of there) mkdirSync(join(out, 'feed', name), { recursive: true });
    expect(await versionNumber(out, 'feed', { modelVersion, force: false })).toBe(want);
  });
});

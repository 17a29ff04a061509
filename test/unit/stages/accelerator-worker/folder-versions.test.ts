import { describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import { MillraceError } from '../../../../src/core/errors.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';
import { FolderVersions } from '../../../../src/stages/accelerator-worker/folder-versions.ts';
import { LoadedVersions } from '../../../../src/stages/accelerator-worker/loaded-versions.ts';
import { handDrivenLibrary } from './library.fixture.ts';
import { handDrivenModel } from './model.fixture.ts';

const away = new MillraceError('MODEL_UNAVAILABLE', 'nobody answers');
const wrong = new MillraceError('INVALID_MODEL', 'golden case 1 gives NaN');

/** A worker whose versions could not be loaded at the start, each with the error that it still has. */
function setUp(unloaded: Readonly<Record<string, Error>>) {
  const clock = virtualClock();
  const hand = handDrivenLibrary();
  const loaded = new LoadedVersions([]);
  const telemetry = silentTelemetry();
  const triesMs: number[] = [];
  const announced: string[] = [];
  for (const [version, error] of Object.entries(unloaded))
    hand.unloadable.set(`ranker@${version}`, error as MillraceError);
  const folder = new FolderVersions(
    Object.entries(unloaded).map(([version, error]) => ({ family: 'ranker', version, error })),
    {
      backend: {
        load: (...how) => {
          triesMs.push(clock.monotonicMs());
          return hand.backend.load(...how);
        },
      },
      loaded,
      clock,
      random: seededRandom(1).stream('folder'),
      telemetry,
      onLoaded: () => announced.push(loaded.folder.map(({ version }) => version).join(' ')),
    },
  );
  folder.start();
  const told = (): unknown[] =>
    telemetry.logs.filter(({ level }) => level === 'error').map(({ fields }) => fields);
  return { clock, hand, loaded, folder, triesMs, announced, told };
}

describe('versions of the model folder that could not be loaded', () => {
  it('are tried again after waits that grow up to half a minute, for as long as it takes', async () => {
    const { clock, hand, loaded, folder, triesMs, announced } = setUp({ 1: away });
    await clock.advanceBy(600_000);
    const waitsMs = triesMs.map((atMs, place) => atMs - (triesMs[place - 1] ?? 0));
    for (const [place, waitMs] of waitsMs.entries()) {
      const mostMs = Math.min(30_000, 1_000 * 2 ** place);
      expect(waitMs).toBeGreaterThanOrEqual(mostMs / 2);
      expect(waitMs).toBeLessThanOrEqual(mostMs);
    }
    expect(triesMs.length).toBeGreaterThan(20);
    expect(folder.reasons()).toEqual(['ranker@1: nobody answers']);
    hand.unloadable.clear();
    await clock.advanceBy(30_000);
    expect(announced).toEqual(['1']);
    expect(loaded.modelFor('ranker', null, 'BASELINE')).toBe(hand.models.get('ranker@1'));
    expect(folder.reasons()).toEqual([]);
    const tries = triesMs.length;
    await clock.advanceBy(600_000);
    expect(triesMs).toHaveLength(tries);
  });

  it.each([
    ['an error of this machine', new Error('EMFILE: too many open files'), true],
    ['what may pass', away, true],
    ['what the same files would do again', wrong, false],
  ])('for %s: tried again is what can help', async (_, error, isTried) => {
    const { clock, triesMs, folder } = setUp({ 1: error });
    await clock.advanceBy(3_600_000);
    expect(triesMs.length > 0).toBe(isTried);
    expect(folder.reasons()).toEqual([`ranker@1: ${error.message}`]);
  });

  it('are refused for good once the reason is one that stays', async () => {
    const { clock, hand, triesMs, folder } = setUp({ 1: away });
    await clock.advanceBy(5_000);
    hand.unloadable.set('ranker@1', wrong);
    await clock.advanceBy(30_000);
    const tries = triesMs.length;
    await clock.advanceBy(3_600_000);
    expect(triesMs).toHaveLength(tries);
    expect(folder.reasons()).toEqual(['ranker@1: golden case 1 gives NaN']);
  });

  it('are told of once for each reason, not at every try', async () => {
    const { clock, hand, told } = setUp({ 1: away });
    await clock.advanceBy(120_000);
    // who opened the folder told of the first reason
    expect(told()).toEqual([]);
    hand.unloadable.set('ranker@1', new MillraceError('MODEL_UNAVAILABLE', 'it is still loading'));
    await clock.advanceBy(120_000);
    expect(told()).toEqual([
      { family: 'ranker', version: '1', reason: 'it is still loading', triedAgain: true },
    ]);
  });

  it('do not wait for each other: what may be loaded is, beside what serves, and the rest goes on', async () => {
    const { clock, hand, loaded, folder } = setUp({ 1: away, 2: wrong, 3: away });
    hand.unloadable.delete('ranker@3');
    await clock.advanceBy(30_000);
    expect(loaded.folder.map(({ version }) => version)).toEqual(['3']);
    expect(folder.reasons()).toEqual(['ranker@1: nobody answers', 'ranker@2: golden case 1 gives NaN']);
    hand.unloadable.clear();
    await clock.advanceBy(30_000);
    expect(loaded.folder.map(({ version }) => version)).toEqual(['3', '1']);
    expect(hand.did.at(-1)).toBe('load ranker@1 beside others');
  });

  it('are tried no more once the worker leaves, and one that comes too late is unloaded', async () => {
    const { clock, hand, loaded, folder, triesMs } = setUp({ 1: away });
    const held = Promise.withResolvers<void>();
    const load = hand.backend.load;
    hand.backend.load = async (...how) => {
      await held.promise;
      return load(...how);
    };
    hand.unloadable.clear();
    await clock.advanceBy(2_000);
    expect(triesMs).toHaveLength(1);
    folder.close();
    held.resolve();
    await clock.advanceBy(600_000);
    expect(hand.did).toEqual(['load ranker@1', 'unload ranker@1']);
    expect([loaded.isEmpty, triesMs.length]).toEqual([true, 1]);
  });
});

it('a version that is loaded later is chosen as if it had been there from the start', () => {
  const loaded = new LoadedVersions([handDrivenModel({ version: '2' })]);
  loaded.addToFolder(handDrivenModel({ version: '10' }));
  loaded.addToFolder(handDrivenModel({ version: '1' }));
  expect(loaded.folder.map(({ version }) => version)).toEqual(['10', '2', '1']);
  expect(loaded.modelFor('ranker', null, 'BASELINE')?.version).toBe('10');
});

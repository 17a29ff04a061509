import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { memoryControlServer } from '../../../../src/adapters/memory/control-store.ts';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import { MillraceError } from '../../../../src/core/errors.ts';
import {
  CATALOGUE_SCOPE,
  type CataloguedModel,
  writeCatalogue,
} from '../../../../src/core/model/catalogue.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';
import { LoadedVersions } from '../../../../src/stages/accelerator-worker/loaded-versions.ts';
import { PublishedVersions } from '../../../../src/stages/accelerator-worker/published-versions.ts';
import { publishedModel, sha256 } from '../../core/model/model.fixture.ts';
import { type HandDrivenLibrary, handDrivenLibrary } from './library.fixture.ts';
import { handDrivenModel } from './model.fixture.ts';

interface Setup {
  hand?: HandDrivenLibrary;
  versionsMax?: number;
}

/** A worker's published versions on a store in memory, and a controller's hand on that store. */
function setUp({ hand = handDrivenLibrary(), versionsMax = 3 }: Setup = {}) {
  const clock = virtualClock();
  const server = memoryControlServer({ clock });
  const writer = server.connect();
  const folder = handDrivenModel();
  const loaded = new LoadedVersions([folder]);
  const telemetry = silentTelemetry();
  const busy = new Set<string>();
  const versions = new PublishedVersions(
    { versionsMax, unloadAfterMs: 60_000 },
    {
      store: server.connect(),
      library: hand.library,
      backend: hand.backend,
      loaded,
      digest: sha256,
      clock,
      random: seededRandom(1).stream('models'),
      telemetry,
      inUse: ({ version }) => busy.has(version),
      onChange: () => undefined,
    },
  );
  const settle = async <T>(promise: Promise<T>): Promise<T> => {
    await clock.advanceBy(0);
    return promise;
  };
  let epoch = 0;
  const write = async (text: string, at: number): Promise<void> => {
    const digest = sha256(text);
    await settle(writer.putDocument(digest, Buffer.from(text)));
    const stable = { digest, name: 'models', version: at };
    await settle(writer.writePointer(CATALOGUE_SCOPE, { epoch: at, term: 1, stable, canary: undefined }));
  };
  /** `3`, or `3!` where a policy names it; each followed by its publication, else its version. */
  const catalogue = async (...names: string[]): Promise<void> => {
    epoch += 1;
    await write(writeCatalogue({ versions: names.map(catalogued) }), epoch);
    await clock.advanceBy(1_500);
  };
  const shown = (): string[] =>
    versions.statuses().map(({ version, status, reason }) => `${version} ${status} ${reason}`.trim());
  const start = async (): Promise<void> => {
    let isStarted = false;
    const starting = versions.start().then(() => {
      isStarted = true;
    });
    await clock.advanceBy(100);
    expect(isStarted).toBe(true);
    await starting;
  };
  /** Lines of the log about versions that are refused. */
  const refusals = (): string[] =>
    telemetry.logs
      .filter(({ message }) => message.startsWith('a published version is refused'))
      .map(({ fields }) => `${fields.model} ${fields.reason}`);
  return { clock, server, hand, loaded, versions, busy, write, catalogue, shown, refusals, start };
}

function catalogued(name: string): CataloguedModel {
  const [version = '', publication = version] = name.replace('!', '').split('/');
  return {
    model: publishedModel(version),
    publication: Number(publication),
    isNamed: name.includes('!'),
    proof: undefined,
  };
}

const refusal = (why: string): MillraceError => new MillraceError('INVALID_MODEL', why);
const absence = (why: string): MillraceError => new MillraceError('MODEL_UNAVAILABLE', why);

describe('published versions', () => {
  it('are fetched and loaded beside those that serve, and serve only who names them', async () => {
    const { hand, loaded, catalogue, shown, start, versions } = setUp();
    await start();
    await catalogue('2', '3');
    expect(hand.did).toEqual([
      'fetch ranker@3',
      'load ranker@3 beside others',
      'fetch ranker@2',
      'load ranker@2 beside others',
    ]);
    expect(shown()).toEqual(['2 READY', '3 READY']);
    expect(versions.epoch).toBe(1);
    expect(loaded.modelFor('ranker', '3', 'BASELINE')).toBe(hand.models.get('ranker@3'));
    expect(loaded.modelFor('ranker', null, 'BASELINE')?.version).toBe('1');
  });

  it('that a policy names come first, and before the worker takes up its slots', async () => {
    const { hand, write, start } = setUp();
    await write(writeCatalogue({ versions: ['2!', '3', '4!'].map(catalogued) }), 1);
    await start();
    expect(hand.did.filter((step) => step.startsWith('load')).slice(0, 2)).toEqual([
      'load ranker@4',
      'load ranker@2',
    ]);
  });

  it.each([
    ['other files than were published', 'unfetched', refusal('model.onnx is not the file')],
    ['a graph that cannot be loaded', 'unloadable', refusal('ONNX Runtime refuses it')],
  ] as const)('with %s are refused with the reason, and nothing else changes', async (_name, how, error) => {
    const { hand, loaded, catalogue, shown, start, clock } = setUp();
    await start();
    await catalogue('2');
    hand[how].set('ranker@3', error);
    await catalogue('2', '3!');
    expect(shown()).toEqual(['2 READY', `3 FAILED ${error.message}`]);
    expect(loaded.modelFor('ranker', '3', 'BASELINE')).toBeUndefined();
    expect(loaded.modelFor('ranker', '2', 'BASELINE')).toBe(hand.models.get('ranker@2'));
    const steps = hand.did.length;
    await clock.advanceBy(600_000);
    expect(hand.did).toHaveLength(steps);
  });

  it('that were refused are tried again when they are published again', async () => {
    const { hand, catalogue, shown, start } = setUp();
    await start();
    hand.unfetched.set('ranker@3', refusal('model.onnx is not the file'));
    await catalogue('3/1');
    hand.unfetched.clear();
    await catalogue('3/1', '4/2');
    expect(shown()).toEqual(['3 FAILED model.onnx is not the file', '4 READY']);
    await catalogue('3/3', '4/2');
    expect(shown()).toEqual(['3 READY', '4 READY']);
  });

  it('whose source drips are fetched from where they are published next, at once, and then those behind them', async () => {
    const { hand, catalogue, shown, start, refusals } = setUp();
    await start();
    hand.dripping.add('ranker@4');
    await catalogue('3/1', '4/2');
    expect(shown()).toEqual(['3 LOADING', '4 LOADING']);
    hand.dripping.clear();
    await catalogue('3/1', '4/3');
    expect(shown()).toEqual(['3 READY', '4 READY']);
    expect(refusals()).toEqual([]);
  });

  it('whose source is away are tried again by themselves after growing waits, and the log says so once', async () => {
    const { hand, catalogue, shown, refusals, start, clock } = setUp();
    await start();
    hand.unfetched.set('ranker@3', absence('the server answers 503'));
    await catalogue('3');
    expect(shown()).toEqual(['3 FAILED the server answers 503']);
    const tries = (): number => hand.did.filter((step) => step === 'fetch ranker@3').length;
    await clock.advanceBy(10_000);
    expect(tries()).toBeGreaterThanOrEqual(4);
    await clock.advanceBy(50_000);
    expect(tries()).toBeLessThanOrEqual(9);
    expect(refusals()).toEqual(['ranker@3 the server answers 503']);
    hand.unfetched.set('ranker@3', absence('the server answers 404'));
    await clock.advanceBy(60_000);
    expect(refusals().slice(1)).toEqual(['ranker@3 the server answers 404']);
    hand.unfetched.clear();
    await clock.advanceBy(30_000);
    expect(shown()).toEqual(['3 READY']);
  });

  it('that are published again are waited for as if they had never failed', async () => {
    const { hand, catalogue, start, clock } = setUp();
    await start();
    hand.unfetched.set('ranker@3', absence('the server answers 503'));
    await catalogue('3/1');
    await clock.advanceBy(600_000);
    hand.did.length = 0;
    await catalogue('3/2');
    await clock.advanceBy(4_000);
    expect(hand.did.length).toBeGreaterThanOrEqual(3);
  });

  it('whose server has not loaded them yet are tried again by themselves', async () => {
    const { hand, loaded, catalogue, shown, start, clock } = setUp();
    await start();
    hand.unloadable.set('ranker@3', absence('the server has no such model'));
    await catalogue('3!');
    await clock.advanceBy(60_000);
    expect(shown()).toEqual(['3 FAILED the server has no such model']);
    hand.unloadable.clear();
    await clock.advanceBy(30_000);
    expect(shown()).toEqual(['3 READY']);
    expect(loaded.modelFor('ranker', '3', 'BASELINE')).toBe(hand.models.get('ranker@3'));
  });

  it('with a fault that only another publication mends are not tried again, and the log says so once', async () => {
    const { hand, catalogue, shown, refusals, start, clock } = setUp();
    await start();
    hand.unfetched.set('ranker@3', refusal('the version is larger than a worker takes'));
    await catalogue('3/1');
    await clock.advanceBy(3_600_000);
    await catalogue('3/1', '2/1');
    expect(hand.did.filter((step) => step === 'fetch ranker@3')).toHaveLength(1);
    expect(refusals()).toEqual(['ranker@3 the version is larger than a worker takes']);
    await catalogue('3/2', '2/1');
    expect(refusals()).toHaveLength(2);
    expect(shown()[0]).toBe('3 FAILED the version is larger than a worker takes');
  });

  it('that a worker has no room for wait until another goes, and not for a time', async () => {
    const { hand, catalogue, shown, refusals, start, clock } = setUp({ versionsMax: 1 });
    await start();
    await catalogue('2!');
    await catalogue('2!', '3!');
    const full = 'this worker holds 1 published versions (allowed: 1 (worker.modelVersionsMax))';
    expect(shown()).toEqual(['2 READY', `3 FAILED ${full}`]);
    const steps = hand.did.length;
    await clock.advanceBy(3_600_000);
    expect(hand.did).toHaveLength(steps);
    expect(refusals()).toEqual([`ranker@3 ${full}`]);
    await catalogue('3!');
    expect(shown()).toEqual(['3 READY']);
  });

  it('that a worker has no room for any more once they are loaded are unloaded again', async () => {
    const hand = handDrivenLibrary();
    const { catalogue, shown, start, clock } = setUp({ hand, versionsMax: 1 });
    await start();
    await catalogue('2');
    const load = hand.backend.load;
    const held = Promise.withResolvers<void>();
    hand.backend.load = async (...how) => {
      await held.promise;
      return load(...how);
    };
    // 3 would take the place of 2, which a policy names meanwhile
    await catalogue('2', '3');
    await catalogue('2!', '3');
    held.resolve();
    await clock.advanceBy(1_000);
    expect(shown()[0]).toBe('2 READY');
    expect(shown()[1]).toMatch(/^3 FAILED this worker holds 1/);
    expect(hand.did.at(-1)).toBe('unload ranker@3');
  });

  it('that are loaded stay as they are, whatever other files come under their name', async () => {
    const { hand, loaded, catalogue, write, shown, refusals, start, clock } = setUp();
    await start();
    await catalogue('3!');
    const serving = loaded.modelFor('ranker', '3', 'BASELINE');
    const model = publishedModel('3', { 'config.yaml': 'format: 1', 'model.onnx': 'another graph' });
    await write(writeCatalogue({ versions: [{ ...catalogued('3!'), model }] }), 7);
    await clock.advanceBy(120_000);
    expect(shown()).toEqual(['3 READY']);
    expect(loaded.modelFor('ranker', '3', 'BASELINE')).toBe(serving);
    expect(hand.did).toHaveLength(2);
    expect(refusals()).toEqual([expect.stringMatching(/^ranker@3 it is loaded with other files, sha256:/)]);
  });

  it('that come to have other files while they are loaded are loaded anew, and the first ones go', async () => {
    const hand = handDrivenLibrary();
    const { catalogue, write, shown, start, clock } = setUp({ hand });
    await start();
    const load = hand.backend.load;
    const held = Promise.withResolvers<void>();
    hand.backend.load = async (...how) => {
      await held.promise;
      return load(...how);
    };
    await catalogue('3');
    const model = publishedModel('3', { 'config.yaml': 'format: 1', 'model.onnx': 'another graph' });
    await write(writeCatalogue({ versions: [{ ...catalogued('3'), model }] }), 7);
    await clock.advanceBy(1_500);
    held.resolve();
    await clock.advanceBy(1_000);
    expect(shown()).toEqual(['3 READY']);
    expect(hand.did.slice(1)).toEqual([
      'load ranker@3 beside others',
      'unload ranker@3',
      'fetch ranker@3',
      'load ranker@3 beside others',
    ]);
  });

  it('that left the catalogue are unloaded after a while: first for routers, then for requests, then for good', async () => {
    const { hand, loaded, busy, catalogue, shown, start, clock } = setUp();
    await start();
    await catalogue('2!');
    busy.add('2');
    await catalogue();
    expect(shown()).toEqual([]);
    await clock.advanceBy(60_000);
    expect(loaded.modelFor('ranker', '2', 'BASELINE')).toBeDefined();
    await clock.advanceBy(12_000);
    expect(loaded.modelFor('ranker', '2', 'BASELINE')).toBeUndefined();
    expect(hand.did).not.toContain('unload ranker@2');
    busy.clear();
    await clock.advanceBy(1_000);
    expect(hand.did.slice(-2)).toEqual(['unload ranker@2', 'forget ranker@2']);
  });

  it('that come back in time stay loaded', async () => {
    const { hand, catalogue, shown, start, clock } = setUp();
    await start();
    await catalogue('2!');
    await catalogue();
    await clock.advanceBy(50_000);
    await catalogue('2!');
    await clock.advanceBy(120_000);
    expect(shown()).toEqual(['2 READY']);
    expect(hand.did).toEqual(['fetch ranker@2', 'load ranker@2 beside others']);
  });

  it('are no more than fit: the oldest that no policy names goes, and what policies name stays', async () => {
    const { hand, catalogue, shown, start, clock } = setUp({ versionsMax: 2 });
    await start();
    await catalogue('2', '3');
    await catalogue('2', '3', '4!');
    expect(shown()).toEqual(['3 READY', '4 READY']);
    await catalogue('3!', '4!', '5!');
    expect(shown()).toEqual([
      '3 READY',
      '4 READY',
      '5 FAILED this worker holds 2 published versions (allowed: 2 (worker.modelVersionsMax))',
    ]);
    await clock.advanceBy(60_000);
    expect(hand.did).toContain('unload ranker@2');
    expect(hand.did).not.toContain('fetch ranker@5');
  });

  it('of the model folder are ready as they are', async () => {
    const hand = handDrivenLibrary();
    const { catalogue, shown, start } = setUp({ hand });
    await start();
    await catalogue('1');
    expect(shown()).toEqual(['1 READY']);
    expect(hand.did).toEqual(['fetch ranker@1']);
  });

  it('stay while the store is away, empty or older', async () => {
    const { server, catalogue, shown, start, clock, write } = setUp();
    await start();
    await catalogue('2!');
    const restore = server.backup();
    await catalogue('2!', '3!');
    server.stop();
    await clock.advanceBy(10_000);
    server.start();
    server.empty();
    await clock.advanceBy(10_000);
    expect(shown()).toEqual(['2 READY', '3 READY']);
    restore();
    await write(writeCatalogue({ versions: [] }), 1);
    await clock.advanceBy(10_000);
    expect(shown()).toEqual(['2 READY', '3 READY']);
  });

  it('are known from what an earlier life kept while the store is away', async () => {
    const hand = handDrivenLibrary();
    const first = setUp({ hand });
    await first.start();
    await first.catalogue('2!');
    hand.did.length = 0;
    const second = setUp({ hand });
    second.server.stop();
    const starting = second.versions.start();
    await second.clock.advanceBy(1_000);
    await starting;
    expect(second.shown()).toEqual(['2 READY']);
    expect(hand.did).toEqual(['fetch ranker@2', 'load ranker@2']);
  });

  it('leave no files behind that no catalogue names, also of before this life; those that serve stay', async () => {
    const hand = handDrivenLibrary();
    const first = setUp({ hand });
    await first.start();
    await first.catalogue('2!', '3');
    await first.versions.close();
    const second = setUp({ hand });
    hand.retained.length = 0;
    second.server.stop();
    const starting = second.versions.start();
    await second.clock.advanceBy(1_000);
    await starting;
    // others may know more than what was kept
    expect(hand.retained).toEqual([]);
    second.server.start();
    await second.catalogue('3', '4');
    expect(hand.retained).toEqual(['2 3 4']);
    await second.clock.advanceBy(120_000);
    await second.catalogue('4');
    expect(hand.retained.at(-1)).toBe('3 4');
  });

  it('do not hold up a start for ever', async () => {
    const hand = handDrivenLibrary();
    hand.library.fetch = () => new Promise(() => undefined);
    const { versions, write, clock } = setUp({ hand });
    await write(writeCatalogue({ versions: [catalogued('2!')] }), 1);
    const starting = versions.start();
    await clock.advanceBy(31_000);
    await starting;
  });

  it.each([
    ['no catalogue', 'nonsense'],
    ['a way out', writeCatalogue({ versions: [{ ...catalogued('2'), model: publishedModel('../2') }] })],
    [
      'a digest of other files',
      writeCatalogue({
        versions: [{ ...catalogued('2'), model: publishedModel('2', undefined, { digest: 'sha256:0' }) }],
      }),
    ],
  ])('are not taken from a store that holds %s', async (_name, text) => {
    const { hand, catalogue, start, shown, write, clock } = setUp();
    await start();
    await catalogue('3');
    hand.did.length = 0;
    await write(text, 7);
    await clock.advanceBy(2_000);
    expect(hand.did).toEqual([]);
    expect(shown().filter((line) => line !== '3 READY')).toEqual([]);
  });

  it('are at most so many, each in one state, whatever happens', async () => {
    const step = fc.record({
      names: fc.uniqueArray(fc.constantFrom('2', '3!', '4', '5!', '6'), { maxLength: 5 }),
      failing: fc.subarray(['ranker@2', 'ranker@3', 'ranker@4']),
      afterMs: fc.nat(80_000),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 6 }), async (steps) => {
        const { hand, catalogue, versions, start, clock, loaded } = setUp({ versionsMax: 2 });
        await start();
        for (const { names, failing, afterMs } of steps) {
          hand.unfetched.clear();
          for (const name of failing) hand.unfetched.set(name, absence('away'));
          await catalogue(...names);
          await clock.advanceBy(afterMs);
          const statuses = versions.statuses();
          const ready = statuses.filter(({ status }) => status === 'READY');
          expect(ready.length).toBeLessThanOrEqual(2);
          expect(new Set(statuses.map(({ version }) => version)).size).toBe(statuses.length);
          for (const { version } of ready)
            expect(loaded.modelFor('ranker', version, 'BASELINE')).toBeDefined();
        }
        await versions.close();
      }),
      { numRuns: 50 },
    );
  });
});

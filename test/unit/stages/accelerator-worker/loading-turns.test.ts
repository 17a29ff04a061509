import { describe, expect, it } from 'vitest';
import { memoryControlServer } from '../../../../src/adapters/memory/control-store.ts';
import { MillraceError } from '../../../../src/core/errors.ts';
import type { LoadedModel } from '../../../../src/ports/accelerator.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';
import { type LoadingTurns, takingTurns } from '../../../../src/stages/accelerator-worker/loading-turns.ts';
import { handDrivenModel } from './model.fixture.ts';

/** Workers on one store whose loads end when the test says so. */
function setUp() {
  const clock = virtualClock();
  const server = memoryControlServer({ clock });
  const loading: string[] = [];
  const worker = (name: string, host = 'machine', store: LoadingTurns['store'] = server.connect()) => {
    let end: (model: LoadedModel) => void = () => undefined;
    let fail: (error: Error) => void = () => undefined;
    const backend = takingTurns(
      {
        load: (_family, version) =>
          new Promise((resolve, reject) => {
            loading.push(`${name} ${version}`);
            end = resolve;
            fail = reject;
          }),
      },
      { store, clock, host, worker: name },
    );
    const load = (version: string, besideOthers = true): Promise<string> =>
      backend.load('ranker', version, { besideOthers }).then(
        () => 'loaded',
        (error: Error) => error.message,
      );
    return { load, end: () => end(handDrivenModel()), fail: (error: Error) => fail(error) };
  };
  /** What loads, once it has had a second. */
  const shown = async (): Promise<string[]> => {
    await clock.advanceBy(1_000);
    return loading;
  };
  return { clock, worker, shown };
}

describe('workers of one machine', () => {
  it('load beside others one after another', async () => {
    const { worker, shown } = setUp();
    const [a, b] = [worker('a'), worker('b')];
    void a.load('2');
    expect(await shown()).toEqual(['a 2']);
    const second = b.load('2');
    expect(await shown()).toEqual(['a 2']);
    a.end();
    expect(await shown()).toEqual(['a 2', 'b 2']);
    b.end();
    await shown();
    expect(await second).toBe('loaded');
  });

  it('give the turn on where a load fails, with its reason', async () => {
    const { worker, shown } = setUp();
    const [a, b] = [worker('a'), worker('b')];
    const first = a.load('2');
    expect(await shown()).toEqual(['a 2']);
    void b.load('2');
    a.fail(new MillraceError('INVALID_MODEL', 'no graph'));
    expect(await shown()).toEqual(['a 2', 'b 2']);
    expect(await first).toContain('no graph');
  });

  it('keep the turn for as long as a load takes', async () => {
    const { clock, worker, shown } = setUp();
    const [a, b] = [worker('a'), worker('b')];
    void a.load('2');
    await shown();
    void b.load('2');
    await clock.advanceBy(40_000);
    expect(await shown()).toEqual(['a 2']);
  });

  it('wait a minute and no longer', async () => {
    const { clock, worker, shown } = setUp();
    const [a, b] = [worker('a'), worker('b')];
    void a.load('2');
    await shown();
    void b.load('2');
    await clock.advanceBy(60_000);
    expect(await shown()).toEqual(['a 2', 'b 2']);
  });

  it('wait for those of other machines not at all', async () => {
    const { worker, shown } = setUp();
    void worker('a').load('2');
    void worker('b', 'other machine').load('2');
    expect(await shown()).toEqual(['a 2', 'b 2']);
  });

  it('wait not at all where nothing serves yet', async () => {
    const { worker, shown } = setUp();
    void worker('a').load('2');
    await shown();
    void worker('b').load('2', false);
    expect(await shown()).toEqual(['a 2', 'b 2']);
  });

  it('take turns within a worker, too', async () => {
    const { worker, shown } = setUp();
    const a = worker('a');
    void a.load('2');
    await shown();
    void a.load('3');
    expect(await shown()).toEqual(['a 2']);
  });

  it('load at once where the store is away', async () => {
    const { worker, shown } = setUp();
    const away = {
      acquireLease: () => Promise.reject(new MillraceError('STORE_UNAVAILABLE', 'no answer')),
    };
    const lonely = worker('a', 'machine', away);
    void worker('b').load('2');
    await shown();
    void lonely.load('2');
    expect(await shown()).toEqual(['b 2', 'a 2']);
  });
});

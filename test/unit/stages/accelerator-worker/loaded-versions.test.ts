import { describe, expect, it } from 'vitest';
import { LoadedVersions } from '../../../../src/stages/accelerator-worker/loaded-versions.ts';
import { handDrivenModel } from './model.fixture.ts';

const model = (version: string, variant: 'baseline' | 'enhanced' = 'baseline') =>
  handDrivenModel({ version, variant });

describe('the versions that a worker can run', () => {
  it('are the newest of the folder where none is named, and the named one', () => {
    const loaded = new LoadedVersions([model('9'), model('10'), model('11', 'enhanced')]);
    loaded.add(model('12'));
    expect(loaded.modelFor('ranker', null, 'BASELINE')?.version).toBe('10');
    expect(loaded.modelFor('ranker', null, 'ENHANCED')?.version).toBe('11');
    expect(loaded.modelFor('ranker', '9', 'BASELINE')?.version).toBe('9');
    expect(loaded.modelFor('ranker', '12', 'ENHANCED')?.version).toBe('12');
    expect(loaded.modelFor('ranker', '13', 'BASELINE')).toBeUndefined();
    expect(loaded.modelFor('ads', null, 'BASELINE')).toBeUndefined();
  });

  it('lose a published one, and none that took its place', () => {
    const loaded = new LoadedVersions([model('1')]);
    const [first, second] = [model('2'), model('2')];
    loaded.add(first);
    loaded.add(second);
    loaded.remove(first);
    expect(loaded.modelFor('ranker', '2', 'BASELINE')).toBe(second);
    loaded.remove(second);
    expect(loaded.modelFor('ranker', '2', 'BASELINE')).toBeUndefined();
  });

  it('have the kernels of the backend that can run any of them', () => {
    const backend = ['dense', 'sparse'];
    const kernelsOf = (...models: (readonly string[] | undefined)[]): string[] =>
      new LoadedVersions(
        models.map((kernels, n) => handDrivenModel({ version: String(n), ...(kernels && { kernels }) })),
      ).kernelsOf(backend);
    expect(kernelsOf()).toEqual(backend);
    expect(kernelsOf(undefined)).toEqual(backend);
    expect(kernelsOf(['dense'], ['dense'])).toEqual(['dense']);
    expect(kernelsOf(['dense'], ['dense', 'sparse'])).toEqual(backend);
    const loaded = new LoadedVersions([handDrivenModel({ kernels: ['dense'] })]);
    loaded.add(handDrivenModel({ version: '2', kernels: ['sparse'] }));
    expect(loaded.kernelsOf(backend)).toEqual(backend);
  });
});

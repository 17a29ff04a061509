import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AcceleratorProfile } from '../../../../src/core/profile/profile.ts';
import { readProfile } from '../../../../src/inference/profile/profile-schema.ts';
import { profilesOfFleet } from '../../core/profile/profile.arbitrary.ts';
import { profile, sparse, target, version } from '../../core/profile/profile.fixture.ts';

const GOOD = profile('cpu', [
  version('ads', [{ ...target('dense', 'host', 0.1, 0.01), shapes: [{ candidates: 1, rows: 0, ms: 0.1 }] }], {
    batches: [{ kernel: 'dense', memory: 'host', requests: 4, candidates: 32, ms: 0.4 }],
    sparse: [{ ...sparse(0.9, 0.1), compared: [{ zeroShare: 0.5, ratio: 0.8 }] }],
    refusedKernels: { sparse: 'has no product' },
  }),
]);

const read = (value: unknown): AcceleratorProfile => readProfile('cpu.json', JSON.stringify(value));

/** The profile with another value at a path. */
function withAt(path: readonly (string | number)[], value: unknown): unknown {
  const changed = structuredClone(GOOD) as unknown;
  const last = path.at(-1) ?? '';
  const parent = path.slice(0, -1).reduce((at, key) => Reflect.get(at as object, key), changed);
  Reflect.set(parent as object, last, value);
  return changed;
}

/** Every place of a value, by its path. */
function placesIn(value: unknown, path: readonly (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [[...path]];
  const inside = Object.entries(value).flatMap(([key, of]) =>
    placesIn(of, [...path, Array.isArray(value) ? Number(key) : key]),
  );
  return path.length === 0 ? inside : [[...path], ...inside];
}

const shown = (path: readonly (string | number)[]): string =>
  path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`))
    .join('')
    .replace(/^\./, '');

describe('a profile that was written', () => {
  it('is read as it was, whatever was measured', () => {
    expect(read(GOOD)).toEqual(GOOD);
    fc.assert(
      fc.property(profilesOfFleet, ({ profiles }) => {
        for (const one of profiles) {
          // JSON has one zero.
          const written = JSON.parse(JSON.stringify(one)) as unknown;
          expect(read(written)).toEqual(written);
        }
      }),
    );
  });

  it.each(placesIn(GOOD).map((path) => [shown(path), path] as const))(
    'is refused with its path where %s is something else',
    (name, path) => {
      const wrong = [
        ...(/faster(From|Below)/.test(name) ? [] : [null]),
        // A reason may be any text, and left out.
        ...(name.endsWith('refusedKernels.sparse') ? [7] : ['\n'.repeat(30), undefined]),
      ];
      for (const value of wrong) expect(() => read(withAt(path, value))).toThrow(`${name}: `);
    },
  );

  it.each<[string, (string | number)[], unknown]>([
    ['another format', ['format'], 2],
    ['a version twice', ['versions'], [GOOD.versions[0], GOOD.versions[0]]],
    ['a target twice', ['versions', 0, 'targets'], [0, 0].map(() => GOOD.versions[0]?.targets[0])],
    ['a cost that no sum can hold', ['versions', 0, 'targets', 0, 'coefficients', 0], 1e308],
    ['an accelerator that no fleet can have', ['accelerator'], 'a b'],
    ['a name that ends a line', ['accelerator'], 'cpu\n  - id: x'],
    ['a name that YAML reads as more', ['versions', 0, 'targets', 0, 'kernel'], 'dense, memory: l2}'],
    ['a comment that ends', ['machine'], 'x\ntree: []'],
    ['a carriage return', ['machine'], 'x\rtree: []'],
    ['a line of another standard', ['software'], 'x\u0085y'],
    ['a terminal sequence', ['software'], '\u001b[2J'],
    ['a family that no repository has', ['versions', 0, 'family'], '../x'],
    ['a version that is none', ['versions', 0, 'version'], '01'],
    ['a digest of two lines', ['versions', 0, 'digest'], 'a\nb'],
    ['a time of nothing', ['versions', 0, 'targets', 0, 'shapes', 0, 'ms'], 0],
    ['a negative coefficient', ['versions', 0, 'targets', 0, 'coefficients', 1], -1],
    ['no coefficient above 0', ['versions', 0, 'targets', 0, 'coefficients'], [0, 0]],
    ['a coefficient too many', ['versions', 0, 'targets', 0, 'coefficients'], [1, 2, 3]],
    ['a feature that is not known', ['versions', 0, 'targets', 0, 'features'], ['1', 'X']],
    ['a share above 1', ['versions', 0, 'sparse', 0, 'fasterFromZeros'], 1.5],
    ['half a candidate', ['versions', 0, 'batches', 0, 'candidates'], 0.5],
    ['a key that is not known', ['versions', 0, 'more'], 1],
    ['a kernel of a bad name', ['versions', 0, 'refusedKernels'], { 'a b': 'x' }],
    ['a kernel called constructor', ['versions', 0, 'refusedKernels'], { constructor: 'x' }],
  ])('is refused for %s', (_, path, value) => {
    const place = shown(path.slice(0, 1));
    expect(() => read(withAt(path, value))).toThrow(`cpu.json is no profile: ${place}`);
    expect(() => read(withAt(path, value))).toThrow(/millrace profile --out/);
  });

  it.each(['__proto__', 'constructor', 'prototype'])('is refused for a key %s', (key) => {
    const text = JSON.stringify(GOOD).replace('{', `{"${key}":{"accelerator":"cpu"},`);
    expect(() => readProfile('cpu.json', text)).toThrow(/unknown key/);
    expect(() =>
      readProfile('cpu.json', text.replace('"refusedKernels":{', `"refusedKernels":{"${key}":"x",`)),
    ).toThrow();
  });

  it.each(['', '[]', 'null', '{', '"cpu"', '{}'])('is refused where it is %j', (text) => {
    expect(() => readProfile('cpu.json', text)).toThrow(
      expect.objectContaining({
        code: 'INVALID_CONFIG',
        message: expect.stringContaining('cpu.json is no profile: '),
      }),
    );
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { fileUrl, readModelLocation } from '../../../../src/core/model/model-location.ts';

describe('where the files of a version lie', () => {
  it.each([
    ['/models/ranker/3', { kind: 'folder', path: '/models/ranker/3' }],
    ['/models/ranker/3/', { kind: 'folder', path: '/models/ranker/3' }],
    ['file:///models/ranker/a%20b/', { kind: 'folder', path: '/models/ranker/a b' }],
    ['https://models.example/ranker/3', { kind: 'http', url: 'https://models.example/ranker/3/' }],
    ['http://127.0.0.1:9000/bucket/3/?v=1', { kind: 'http', url: 'http://127.0.0.1:9000/bucket/3/?v=1' }],
  ])('%s', (source, location) => {
    expect(readModelLocation(source)).toEqual(location);
  });

  it.each([
    'models/ranker',
    '',
    's3://bucket/ranker/3',
    'ftp://models.example/3',
    'file://host/models',
    'file:///models%2f..%2fetc',
    'file:///models?x=1',
    '/models/\n3',
    'https://',
    `/${'x'.repeat(2_000)}`,
  ])('%s is none', (source) => {
    expect(() => readModelLocation(source)).toThrow(/no place for the files.*allowed: an absolute folder/s);
  });

  it('does not repeat a password', () => {
    const read = (): unknown => readModelLocation('https://ana:secret@models.example/3');
    expect(read).toThrow(/Leave out user, password/);
    expect(read).not.toThrow(/secret/);
  });

  it('is read or refused, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.webUrl(),
          fc.webUrl().map((url) => url.replace('http', 'file')),
        ),
        (source) => {
          try {
            readModelLocation(source);
          } catch (error) {
            expect(error).toBeInstanceOf(MillraceError);
          }
        },
      ),
    );
  });

  it('a file lies right under it, before the query', () => {
    const base = 'https://models.example/ranker/3/?signature=abc';
    expect(fileUrl(base, 'model.onnx')).toBe('https://models.example/ranker/3/model.onnx?signature=abc');
    for (const name of ['../model.onnx', 'a/b', '..', '', '.x', 'a?b', 'a%2fb'])
      expect(() => fileUrl(base, name)).toThrow(/no name of a file/);
  });
});

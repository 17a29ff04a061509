import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { manifestText } from '../../../../src/core/model/published-model.ts';
import { readPublishedModel } from '../../../../src/core/model/read-published-model.ts';
import { anyModel, publishedModel, sha256 } from './model.fixture.ts';

const read = (body: string) => readPublishedModel(body, sha256);
const model = publishedModel();
const [config, graph] = model.files;
const withFiles = (files: unknown[]) => ({ ...model, files });

describe('the body of PUBLISH_MODEL', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(anyModel, (any) => {
        expect(read(JSON.stringify(any))).toEqual(any);
      }),
    );
  });

  it('is read whatever the order of its files', () => {
    expect(read(JSON.stringify(withFiles([graph, config])))).toEqual(model);
  });

  it.each([
    ['an empty body', '', /does not take this body/],
    ['no JSON', 'ranker@3', /does not take this body/],
    ['a field that is not known', { ...model, sources: [] }, /does not take this body/],
    ['a version that is a number', { ...model, version: 3 }, /does not take this body/],
    ['a body without end', { ...model, source: 'x'.repeat(70_000) }, /does not take this body/],
    ['a family that is no name', { ...model, family: '../ranker' }, /family is not .*small letters/],
    ['version 0', { ...model, version: '0' }, /version is not .*whole number from 1/],
    ['a source that is no place', { ...model, source: 'models/ranker' }, /no place for the files/],
    [
      'another digest',
      { ...model, digest: `sha256:${'0'.repeat(64)}` },
      /not that of the files that are listed/,
    ],
    ['no files', withFiles([]), /1 … 32 files/],
    ['a file twice', withFiles([config, config]), /each file once/],
    ['no config', withFiles([graph]), /config.yaml among them/],
    ['a way out', withFiles([config, { ...graph, name: '../model.onnx' }]), /one folder/],
    ['a folder', withFiles([config, { ...graph, name: 'weights/model.onnx' }]), /one folder/],
    ['a hidden file', withFiles([config, { ...graph, name: '.model' }]), /one folder/],
    ['an empty file', withFiles([config, { ...graph, bytes: 0 }]), /not empty/],
    ['a file of half a byte', withFiles([config, { ...graph, bytes: 0.5 }]), /does not take this body/],
    ['a file without end', withFiles([config, { ...graph, bytes: 2 ** 33 }]), /at most 4294967296 together/],
    ['a digest that is none', withFiles([config, { ...graph, digest: 'md5:0' }]), /64 hexadecimal digits/],
  ])('is refused with %s', (_name, body, reason) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    expect(() => read(text)).toThrow(reason);
    expect(() => read(text)).toThrow(expect.objectContaining({ code: 'INVALID_COMMAND' }));
  });

  it('is read or refused, whatever it is', () => {
    const odd = fc.oneof(
      fc.string(),
      fc.json(),
      fc
        .tuple(anyModel, fc.constantFrom(...Object.keys(model)), fc.jsonValue())
        .map(([any, field, value]) => JSON.stringify({ ...any, [field]: value })),
    );
    fc.assert(
      fc.property(odd, (body) => {
        try {
          read(body);
        } catch (error) {
          expect(error).toBeInstanceOf(MillraceError);
        }
      }),
    );
  });

  it('has the digest of its manifest, which anybody can make', () => {
    const hex = (digest: string | undefined): string => digest?.replace('sha256:', '') ?? '';
    expect(manifestText(model.files)).toBe(
      `millrace-model 1\n${hex(config?.digest)}  9  config.yaml\n${hex(graph?.digest)}  7  model.onnx\n`,
    );
  });
});

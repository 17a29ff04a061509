import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseRequest, readRequestFile } from '../../../src/cli/request-file.ts';
import { readFp32, readIds } from '../../../src/client/tensors.ts';
import type { Tensor } from '../../../src/contracts/records.ts';
import { MillraceError } from '../../../src/core/errors.ts';

function parse(content: unknown) {
  return parseRequest(content, 'r.json');
}

function tensorOf(written: unknown): Tensor {
  const [made] = parse({ model: 'm', candidateTensors: { item: written } }).candidateTensors ?? [];
  if (made === undefined) throw new Error('no tensor was read');
  return made;
}

describe('a request file', () => {
  it('is read with every field', () => {
    const input = parse({
      about: 'an example',
      requestId: 'r-1',
      model: 'ranker@2',
      deadlineMs: 250,
      priority: 0,
      value: 1.5,
      candidateValues: [1, 2],
      bucketKey: 'user-1',
      region: 'eu',
      baselineCandidates: 1,
      candidateIds: [1001, 1002],
      requestTensors: { user: [1, 2, 3] },
      candidateTensors: {
        item: [
          [1, 2],
          [3, 4],
        ],
      },
      hints: { conversionWeight: 2 },
      context: { surface: 'feed' },
      experiments: { a: 'b' },
      optOut: ['RMA'],
      pin: 'baseline',
      featuresAsOf: 1_700_000_000_000,
      explain: true,
    });
    expect(input).toMatchObject({
      requestId: 'r-1',
      model: 'ranker@2',
      deadlineMs: 250,
      priority: 0,
      baselineCandidates: 1,
      hints: { conversionWeight: 2 },
      optOut: ['RMA'],
      explain: true,
    });
    expect(input).not.toHaveProperty('about');
    expect(input.candidateIds && readIds(input.candidateIds)).toEqual(['1001', '1002']);
    expect(input.candidateValues && [...readFp32(input.candidateValues)]).toEqual([1, 2]);
    expect(input.requestTensors?.[0]).toMatchObject({ name: 'user', datatype: 'FP32', shape: [3] });
    expect(input.candidateTensors?.[0]).toMatchObject({ name: 'item', shape: [2, 2] });
  });

  it('asks for all candidates where it does not say how many', () => {
    expect(parse({ model: 'm', candidateTensors: { item: [[1], [2], [3]] } }).baselineCandidates).toBe(3);
    expect(parse({ model: 'm', candidateIds: ['a', 'b'] }).baselineCandidates).toBe(2);
    expect(parse({ model: 'm' }).baselineCandidates).toBe(0);
  });

  it('has ids as numbers or as texts', () => {
    expect(parse({ model: 'm', candidateIds: [1, 2] }).candidateIds).toMatchObject({ datatype: 'INT64' });
    expect(parse({ model: 'm', candidateIds: ['x'] }).candidateIds).toMatchObject({ datatype: 'BYTES' });
    expect(parse({ model: 'm', candidateIds: [] }).candidateIds).toMatchObject({ shape: [0] });
  });

  it.each([
    [{ shape: [0, 32], values: [] }, 'FP32', [0, 32], 0],
    [{ datatype: 'INT64', values: [1, 2] }, 'INT64', [2], 16],
    [{ datatype: 'INT32', shape: [2, 1], values: [1, 2] }, 'INT32', [2, 1], 8],
    [{ datatype: 'BOOL', values: [true, false] }, 'BOOL', [2], 2],
    [{ datatype: 'BYTES', values: ['a', 'bc'] }, 'BYTES', [2], 11],
    [[], 'FP32', [0], 0],
    [[[], []], 'FP32', [2, 0], 0],
  ])('has tensors such as %j', (written, datatype, shape, bytes) => {
    const made = tensorOf(written);
    expect(made).toMatchObject({ datatype, shape });
    expect(made.contents).toHaveLength(bytes);
  });

  it('has nested arrays in row-major order, of any shape', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 }), (shape) => {
        let next = 0;
        const nest = (depth: number): unknown =>
          depth === shape.length ? next++ : Array.from({ length: shape[depth] ?? 0 }, () => nest(depth + 1));
        const made = tensorOf(nest(0));
        expect(made.shape).toEqual(shape);
        expect([...readFp32(made.contents)]).toEqual(Array.from({ length: next }, (_, index) => index));
      }),
    );
  });

  it.each([
    ['a missing model', {}, /^r\.json: model: it is missing .*family@version/],
    ['an unknown field', { model: 'm', hint: {} }, /^r\.json: hint: .*Did you mean "hints"/],
    ['another unknown field', { model: 'm', xyzzy: 1 }, /^r\.json: xyzzy: .*allowed: about, requestId/],
    [
      'a number as a text',
      { model: 'm', deadlineMs: '5' },
      /deadlineMs: .*got "5".*whole milliseconds above 0/,
    ],
    ['a priority out of range', { model: 'm', priority: 10 }, /priority: .*got 10.*0 \(highest\) to 9/],
    ['a hint that is none', { model: 'm', hints: { a: 'b' } }, /hints\.a: .*got "b".*numbers by name/],
    [
      'an opt-out that is none',
      { model: 'm', optOut: ['ALL'] },
      /optOut\[0\]: .*got "ALL".*RMA, SBM, EXPLORE/,
    ],
    ['ids of two kinds', { model: 'm', candidateIds: [1, 'a'] }, /candidateIds/],
    ['an id beyond 2^53', { model: 'm', candidateIds: [2 ** 60] }, /candidateIds.*below 2\^53/],
    ['several things', { priority: 10, value: 'x' }, /\(and 2 more\)/],
    ['no object', [], /^r\.json: a request is a JSON object/],
    ['null', null, /^r\.json: a request is a JSON object/],
  ])('is refused for %s', (_name, content, message) => {
    expect(() => parse(content)).toThrow(MillraceError);
    expect(() => parse(content)).toThrow(message);
  });

  it.each([
    [
      'a value that is no number',
      [
        [1, 2],
        [3, 'x'],
      ],
      /candidateTensors\.item\[1\]\[1\]: .*FP32.*got "x".*numbers/,
    ],
    ['rows of different lengths', [[1, 2], [3]], /candidateTensors\.item\[1\]: .*got \[1\].*allowed: \[2\]/],
    ['values beside rows', [[1], 2], /item\[1\]: it has another shape/],
    [
      'a shape that they do not fill',
      { shape: [2, 2], values: [1] },
      /r\.json: .*item.*1 values for \[2,2\]/,
    ],
    ['a datatype that is none', { datatype: 'FP8', values: [1] }, /item: this is no tensor .*FP32, FP64/],
    ['halves', { datatype: 'FP16', values: [1] }, /item: this is no tensor/],
    ['a field that is none', { values: [1], name: 'x' }, /item: this is no tensor/],
    ['a fraction among whole numbers', { datatype: 'INT32', values: [1.5] }, /element 0.*whole numbers/],
    ['a number', 7, /item: this is no tensor/],
    ['arrays nested too deeply', [[[[[[[[[1]]]]]]]]], /nested too deeply.*at most 8/],
  ])('is refused for tensors with %s', (_name, written, message) => {
    expect(() => tensorOf(written)).toThrow(MillraceError);
    expect(() => tensorOf(written)).toThrow(message);
  });

  it('is refused where it is a policy, which other commands take', () => {
    expect(() => readRequestFile('examples/policies/starter.yaml')).toThrow(
      /starter\.yaml is not JSON: .*It is a policy: see millrace policy --help/,
    );
  });

  it('is refused where it is not JSON, in one line', () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-request-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'r.json');
    writeFileSync(file, '{\n  "model": \n}');
    expect(() => readRequestFile(file)).toThrow(
      /r\.json is not JSON: (?!SyntaxError)\S.*allowed: a request.*Correct the file.*$/,
    );
    expect(() => readRequestFile(join(folder, 'none.json'))).toThrow(/none of this name/);
  });

  it('gives a request or a MillraceError, whatever is in it', () => {
    const anything = fc.oneof(
      fc.anything(),
      fc.record({ model: fc.constant('m'), candidateTensors: fc.dictionary(fc.string(), fc.anything()) }),
    );
    fc.assert(
      fc.property(anything, (content) => {
        try {
          parse(content);
        } catch (error) {
          expect(error).toBeInstanceOf(MillraceError);
        }
      }),
    );
  });
});

describe('examples/requests', () => {
  it('holds a request of the packaged model', () => {
    const input = readRequestFile('examples/requests/ranker.json');
    expect(input).toMatchObject({ model: 'ranker', baselineCandidates: 8 });
    expect(input.candidateTensors?.[0]?.shape).toEqual([8, 32]);
    expect(input.requestTensors?.map(({ shape }) => shape)).toEqual([[64], [4, 32]]);
  });
});

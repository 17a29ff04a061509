import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  DEFAULT_REPOSITORY_LIMITS,
  openRepository,
} from '../../../../src/inference/repository/open-repository.ts';
import { bytesField, FLOAT, initializer, message, model } from '../onnx-bytes.ts';
import { type ToyFiles, toyConfig, toyFiles, toyGraph, writeVersion } from '../toy-model.ts';

let folder: string;
let root: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-models-'));
  root = join(folder, 'repository');
  await mkdir(root);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** The reason for which the only version is refused when the repository is opened. */
async function refusal(files: ToyFiles, at?: string): Promise<string> {
  await writeVersion(root, files, at);
  const { families, refused } = await openRepository(root);
  expect(families).toEqual([]);
  expect(refused).toHaveLength(1);
  expect(refused[0]?.error.code).toBe('INVALID_MODEL');
  return refused[0]?.error.message ?? '';
}

describe('openRepository', () => {
  test('reads families and their versions, oldest first', async () => {
    for (const version of [10, 9, 1])
      await writeVersion(root, toyFiles(version, version === 10 ? 'enhanced' : 'baseline'));
    await writeFile(join(root, 'README.md'), 'not a family');
    const { families, refused } = await openRepository(root);
    expect(refused).toEqual([]);
    expect(families.map(({ family, versions }) => [family, versions.map(({ version }) => version)])).toEqual([
      ['toy', ['1', '9', '10']],
    ]);
    expect(families[0]?.versions[0]).toMatchObject({
      family: 'toy',
      version: '1',
      variant: 'baseline',
      synthetic: true,
      inputs: [
        { name: 'user', side: 'request', datatype: 'FP32', shape: [3], required: true },
        { name: 'segment', side: 'request', datatype: 'INT64', shape: [], required: true },
        { name: 'history', side: 'request', datatype: 'FP32', shape: [-1, 2], required: false },
        { name: 'history_length', side: 'request-length', datatype: 'INT64', shape: [], lengthOf: 'history' },
        { name: 'item', side: 'candidate', datatype: 'FP32', shape: [-1, 3], required: true },
        { name: 'request_index', side: 'request-index', datatype: 'INT64', shape: [-1] },
      ],
      slaMs: 50,
      calibrationTarget: 'toy',
      digest: toyConfig().model.digest,
      typicalRows: 4,
    });
  });

  test('gives the family the tightest limits and the SLA of its newest baseline', async () => {
    const [first, second, third] = [toyFiles(1), toyFiles(2), toyFiles(3, 'enhanced')];
    first.config = { ...first.config, limits: { ...first.config.limits, candidatesMax: 10 } };
    second.config = { ...second.config, slaMs: 70 };
    third.config = { ...third.config, slaMs: 90, limits: { ...third.config.limits, sequenceLengthMax: 3 } };
    for (const files of [first, second, third]) await writeVersion(root, files);
    const { families } = await openRepository(root);
    expect(families[0]?.contract).toMatchObject({
      family: 'toy',
      slaMs: 70,
      candidatesMax: 10,
      sequenceLengthMax: 3,
      tensorBytesMax: 4096,
      versions: [
        { version: '1', variant: 'baseline' },
        { version: '2', variant: 'baseline' },
        { version: '3', variant: 'enhanced' },
      ],
    });
  });

  test('keeps the good versions beside a bad one', async () => {
    await writeVersion(root, toyFiles(1));
    await writeVersion(root, { ...toyFiles(2), config: { ...toyConfig(), version: 2, rankBy: 'nonsense' } });
    const repository = await openRepository(root);
    expect(repository.version('toy', '1').version).toBe('1');
    expect(() => repository.version('toy', '2')).toThrowError(
      /toy\/2\/config.yaml: rankBy does not know nonsense/,
    );
    expect(() => repository.version('toy', '3')).toThrowError(/"toy@3"; allowed: toy@1\b/);
    expect(() => repository.version('../toy', '1')).toThrowError(
      expect.objectContaining({ code: 'INVALID_MODEL' }),
    );
  });

  test('refuses a version that takes other inputs than the newest baseline', async () => {
    await writeVersion(root, toyFiles(1));
    const files = toyFiles(2, 'enhanced');
    files.config.inputs = files.config.inputs.filter(({ name }) => name !== 'segment');
    await writeVersion(root, files);
    const { families, refused } = await openRepository(root);
    expect(families[0]?.versions.map(({ version }) => version)).toEqual(['1']);
    expect(refused[0]?.error.message).toMatch(
      /toy\/2 takes other inputs than toy\/1: segment: request INT64/,
    );
  });

  test('refuses a root that is not there', async () => {
    await expect(openRepository(join(root, 'none'))).rejects.toMatchObject({ code: 'INVALID_MODEL' });
  });

  test('has no families in an empty folder', async () => {
    expect(await openRepository(root)).toMatchObject({ families: [], refused: [] });
  });

  type Change = (config: Record<string, unknown>) => void;
  const inputs = (change: (input: Record<string, unknown>) => void, name: string): Change => {
    return (config) => {
      for (const input of toyInputs(config)) if (input.name === name) change(input);
    };
  };
  const toyInputs = (config: Record<string, unknown>): Record<string, unknown>[] =>
    config.inputs as Record<string, unknown>[];

  test.each<[string, Change, RegExp]>([
    [
      'an unknown key',
      (config) => Object.assign(config, { colour: 1 }),
      /toy\/1\/config.yaml: unknown key colour; allowed: format, family/,
    ],
    [
      'an unknown key further in',
      (config) => Object.assign(config.limits as object, { rowsMax: 1 }),
      /limits: unknown key rowsMax; allowed: candidatesMax/,
    ],
    [
      'an unknown key of an input',
      inputs((input) => Object.assign(input, { units: 'm' }), 'user'),
      /inputs\[0\]: unknown key units; allowed: name/,
    ],
    [
      'an input that no object could hold by its name',
      inputs((input) => Object.assign(input, { name: '__proto__' }), 'user'),
      /inputs\[0\].name: must be none of __proto__/,
    ],
    [
      'a hint that no request could carry',
      (config) => Object.assign(config, { hints: [{ name: 'constructor', default: 0 }] }),
      /hints\[0\].name: must be none of __proto__/,
    ],
    ['a missing key', (config) => delete config.rankBy, /rankBy: /],
    ['another format', (config) => Object.assign(config, { format: 2 }), /format: /],
    ['another variant', (config) => Object.assign(config, { variant: 'best' }), /variant: .*baseline/],
    [
      'another family than the folder',
      (config) => Object.assign(config, { family: 'other' }),
      /another version than its folder.*"other\/1"; allowed: toy\/1/,
    ],
    [
      'another version than the folder',
      (config) => Object.assign(config, { version: 2 }),
      /"toy\/2"; allowed: toy\/1/,
    ],
    [
      'a graph in a parent folder',
      (config) => Object.assign(config.model as object, { file: '../model.onnx' }),
      /model.file: must be the name of a file/,
    ],
    [
      'a graph by absolute path',
      (config) => Object.assign(config.model as object, { file: '/etc/passwd' }),
      /model.file/,
    ],
    [
      'golden cases in a folder',
      (config) => Object.assign(config, { golden: 'a/golden.json' }),
      /golden: must be/,
    ],
    ['a hidden cost file', (config) => Object.assign(config, { cost: '..' }), /cost: must be/],
    [
      'a digest of another kind',
      (config) => Object.assign(config.model as object, { digest: 'md5:0' }),
      /model.digest: must be sha256/,
    ],
    [
      'no index',
      (config) => Object.assign(config, { inputs: toyInputs(config).slice(0, -1) }),
      /exactly one input must have side index/,
    ],
    [
      'no candidates',
      (config) => Object.assign(config, { inputs: toyInputs(config).filter(({ name }) => name !== 'item') }),
      /side candidate/,
    ],
    [
      'a sequence nobody counts',
      (config) =>
        Object.assign(config, { inputs: toyInputs(config).filter(({ name }) => name !== 'history_length') }),
      /history needs exactly one input with lengthOf/,
    ],
    [
      'a length of nothing',
      inputs((input) => Object.assign(input, { lengthOf: 'user' }), 'history_length'),
      /lengthOf user names no sequence/,
    ],
    ['an input twice', inputs((input) => Object.assign(input, { name: 'user' }), 'segment'), /named twice/],
    [
      'axes that do not fit',
      inputs((input) => Object.assign(input, { axes: ['request'] }), 'user'),
      /user: axes and shape differ/,
    ],
    [
      'a candidate without its axis',
      inputs((input) => Object.assign(input, { axes: ['request', 'feature'] }), 'item'),
      /item: the first axis/,
    ],
    [
      'a free feature',
      inputs((input) => Object.assign(input, { shape: [-1, -1] }), 'user'),
      /user: shape\[1\] is -1, must be 1 or more/,
    ],
    [
      'a fixed batch',
      inputs((input) => Object.assign(input, { shape: [1, 3] }), 'user'),
      /user: shape\[0\] is 1, must be -1/,
    ],
    [
      'an optional vector',
      inputs((input) => Object.assign(input, { optional: true }), 'user'),
      /user: only a sequence may be optional/,
    ],
    [
      'an index of floats',
      inputs((input) => Object.assign(input, { datatype: 'FP32' }), 'request_index'),
      /request_index: must be INT64/,
    ],
    ['a text for a number', (config) => Object.assign(config, { slaMs: 'fast' }), /slaMs: /],
  ])('refuses a config with %s', async (_, change, reason) => {
    const files = toyFiles();
    change(files.config);
    expect(await refusal(files, 'toy/1')).toMatch(reason);
  });

  test.each<[string, string, RegExp]>([
    ['what is no YAML', 'a: [', /config.yaml: /],
    ['a key twice', 'format: 1\nformat: 1', /unique|duplicate/i],
    ['a list', '- 1', /config.yaml: /],
  ])('refuses a config that is %s', async (_, text, reason) => {
    await writeVersion(root, toyFiles());
    await writeFile(join(root, 'toy/1/config.yaml'), text);
    const { refused } = await openRepository(root);
    expect(refused[0]?.error.message).toMatch(reason);
  });

  test.each<[string, object, RegExp]>([
    ['an unknown feature', { features: ['1', 'X', 'T', 'N*T'] }, /toy\/1\/cost.json: .*feature/],
    ['too few coefficients', { coefficients: [1] }, /cost.json: .*coefficient/],
    ['an unknown key', { slope: 1 }, /cost.json: unknown key slope/],
    ['another version', { version: 7 }, /cost.json is about another version/],
  ])('refuses a cost model with %s', async (_, change, reason) => {
    const files = toyFiles();
    Object.assign(files.cost, change);
    expect(await refusal(files)).toMatch(reason);
  });

  test('refuses a version without a cost model', async () => {
    await writeVersion(root, toyFiles());
    await rm(join(root, 'toy/1/cost.json'));
    const { refused } = await openRepository(root);
    expect(refused[0]?.error.message).toMatch(/toy\/1\/cost.json cannot be read/);
  });

  test('refuses a config that is too large', async () => {
    const files = toyFiles();
    files.config.description = 'x'.repeat(DEFAULT_REPOSITORY_LIMITS.configBytesMax);
    expect(await refusal(files)).toMatch(/config.yaml is too large.*at most 65536 bytes/);
  });
});

describe('files of a version', () => {
  async function openToy(limits = DEFAULT_REPOSITORY_LIMITS) {
    const repository = await openRepository(root, limits);
    return { repository, version: repository.version('toy', '1') };
  }

  test('gives the bytes that the config means', async () => {
    await writeVersion(root, toyFiles());
    const { repository, version } = await openToy();
    expect(Buffer.from(await repository.readGraph(version))).toEqual(toyGraph());
    expect((await repository.readGolden(version)).cases[0]?.inputs.item?.shape).toEqual([3, 3]);
  });

  test('follows a link that stays in the repository', async () => {
    await writeVersion(root, toyFiles());
    await rename(join(root, 'toy/1/model.onnx'), join(root, 'shared.onnx'));
    await symlink('../../shared.onnx', join(root, 'toy/1/model.onnx'));
    const { repository, version } = await openToy();
    expect(Buffer.from(await repository.readGraph(version))).toEqual(toyGraph());
  });

  test('refuses a link out of the repository', async () => {
    await writeVersion(root, toyFiles());
    await rename(join(root, 'toy/1/model.onnx'), join(folder, 'outside.onnx'));
    await symlink(join(folder, 'outside.onnx'), join(root, 'toy/1/model.onnx'));
    const { repository, version } = await openToy();
    await expect(repository.readGraph(version)).rejects.toThrowError(/toy\/1\/model.onnx is a link out of/);
  });

  test('refuses a folder that is a link out of the repository', async () => {
    await writeVersion(folder, toyFiles(), 'outside/1');
    await symlink(join(folder, 'outside'), join(root, 'toy'));
    const { refused } = await openRepository(root);
    expect(refused[0]?.error.message).toMatch(/is a link out of/);
  });

  test('refuses a folder with a name that begins like the root', async () => {
    await writeVersion(`${root}-other`, toyFiles());
    await mkdir(join(root, 'toy'));
    await symlink(`${root}-other/toy/1`, join(root, 'toy/1'));
    const { refused } = await openRepository(root);
    expect(refused[0]?.error.message).toMatch(/is a link out of/);
  });

  test('refuses a graph that is not the one that the config means', async () => {
    await writeVersion(root, { ...toyFiles(), graph: Buffer.concat([toyGraph(), Buffer.from([0x20, 0])]) });
    const { repository, version } = await openToy();
    await expect(repository.readGraph(version)).rejects.toMatchObject({
      code: 'INVALID_MODEL',
      message: expect.stringMatching(/model.onnx is not the file that the config means.*sha256:/),
    });
  });

  test('refuses a cut graph even where the digest is right', async () => {
    const graph = toyGraph().subarray(0, 200);
    await writeVersion(root, { ...toyFiles(), graph, config: toyConfig(graph) });
    const { repository, version } = await openToy();
    await expect(repository.readGraph(version)).rejects.toThrowError(/model.onnx is not a whole ONNX file/);
  });

  test('refuses a graph that keeps weights in another file', async () => {
    const location = message(13, bytesField(1, 'location'), bytesField(2, 'weights.bin'));
    const graph = model(initializer('weights', FLOAT, [1], new Uint8Array(0), location));
    await writeVersion(root, { ...toyFiles(), graph, config: toyConfig(graph) });
    const { repository, version } = await openToy();
    await expect(repository.readGraph(version)).rejects.toThrowError(
      /keeps a tensor in another file.*"weights"/,
    );
  });

  test('refuses a graph that is too large', async () => {
    await writeVersion(root, toyFiles());
    const { repository, version } = await openToy({ ...DEFAULT_REPOSITORY_LIMITS, graphBytesMax: 100 });
    await expect(repository.readGraph(version)).rejects.toThrowError(/too large.*at most 100 bytes/);
  });

  test.each<[string, (golden: ToyFiles['golden']) => void, RegExp]>([
    ['no cases', (golden) => golden.cases.splice(0), /cases: /],
    [
      'a loose tolerance',
      (golden) => Object.assign(golden.tolerance, { relative: 0.5 }),
      /tolerance.relative: /,
    ],
    [
      'a tensor of another size',
      (golden) => Object.assign(golden.cases[0]?.scores ?? {}, { shape: [4] }),
      /cases\[0\].scores: holds 12 bytes, its shape needs 16/,
    ],
    [
      'another family',
      (golden) => Object.assign(golden, { family: 'other' }),
      /golden.json is about another version/,
    ],
  ])('refuses golden cases with %s', async (_, change, reason) => {
    const files = toyFiles();
    change(files.golden);
    await writeVersion(root, files);
    const { repository, version } = await openToy();
    await expect(repository.readGolden(version)).rejects.toThrowError(reason);
  });
});

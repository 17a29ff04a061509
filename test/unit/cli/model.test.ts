import { createHash } from 'node:crypto';
import { appendFileSync, cpSync, mkdirSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CATALOGUE_SCOPE } from '../../../src/core/model/catalogue.ts';
import { millrace } from './cli.fixture.ts';
import { type ControlledInstallation, controlledInstallation } from './controlled-installation.ts';
import { temporaryFolder } from './temporary-folder.ts';

const RANKER_2 = 'models/repository/ranker/2';

describe('model digest', () => {
  it('is what anybody can make of the files', async () => {
    const { out, exitCode } = await millrace(['model', 'digest', RANKER_2]);
    const sha = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');
    const lines = ['config.yaml', 'cost.json', 'golden.json', 'model.onnx'].map((name) => {
      const bytes = readFileSync(`${RANKER_2}/${name}`);
      return `${sha(bytes)}  ${bytes.length}  ${name}\n`;
    });
    expect(exitCode).toBe(0);
    expect(out).toContain(`sha256:${sha(`millrace-model 1\n${lines.join('')}`)}`);
    expect(out).toMatch(/^file +bytes +digest\nconfig.yaml +\d+ +sha256:/);
    expect(out).not.toContain('README');
    const { out: json } = await millrace(['model', 'digest', RANKER_2, '--json']);
    expect(JSON.parse(json)).toMatchObject({ family: 'ranker', version: '2', files: { length: 4 } });
  });

  it('says what is wrong with a place', async () => {
    for (const [place, reason] of [
      ['models/nowhere', /there is none of this name \(got "\/.*models\/nowhere"\)/],
      ['models/repository/ranker', /there is none of this name \(got "\/.*ranker\/config\.yaml"\)/],
      ['models/README.md', /a part of its path is no folder/],
    ] as const)
      for (const what of ['digest', 'publish']) {
        const { err, exitCode } = await millrace(['model', what, place]);
        expect(exitCode).toBe(2);
        expect(err).toMatch(reason);
        expect(err).toContain('A version is a folder with its config.yaml');
        expect(err).not.toContain('ENO');
      }
    const odd = await millrace(['model', 'digest', 's3://bucket/ranker']);
    expect(odd).toMatchObject({ exitCode: 2, err: expect.stringMatching(/no place for the files/) });
  });
});

describe('model publish', () => {
  let control: ControlledInstallation;
  beforeEach(async () => {
    control = await controlledInstallation({ MILLRACE_CONTROLLER_ACCEPT_UNSIGNED: 'true' });
  });
  afterEach(() => control.close());

  it('puts a version into the log and the catalogue, and history tells of it', async () => {
    const { out, err, exitCode } = await control.run('model', 'publish', RANKER_2);
    expect(exitCode).toBe(0);
    const url = pathToFileURL(RANKER_2).href;
    expect(out).toMatch(
      /^accepted: model-published in model\/ranker, epoch 1, term 1: ranker@2 sha256:\w{8}… from file:\/\//,
    );
    expect(err).toContain(`ranker@2 sha256:`);
    expect(err).toContain(`to be fetched from ${url}`);
    // the answer is in the log right before the store has it
    const pointer = () => control.store.readPointer(CATALOGUE_SCOPE);
    await vi.waitFor(async () => expect(await pointer()).toMatchObject({ epoch: 1 }));
    const { out: history } = await control.run('model', 'history', 'ranker');
    expect(history).toMatch(/model-published +model\/ranker +1 +1 +ana +ranker@2 sha256:/);
    expect((await control.run('model', 'history', 'ads')).err).toMatch(
      /nothing was ever decided about a model/,
    );
  });

  it('notes a family that the model folder has not: publishing does not reach extractors', async () => {
    const folder = temporaryFolder();
    const publish = (models: string) =>
      millrace(['model', 'publish', RANKER_2, '--out', folder.path('publish.json')], {
        environment: { MILLRACE_MODELS: models },
      });
    const known = await publish('');
    expect(known).toMatchObject({ exitCode: 0, err: expect.not.stringContaining('note:') });
    const { err, exitCode } = await publish(folder.path('.'));
    expect(exitCode).toBe(0);
    expect(err).toMatch(/note: .* has no version of ranker\. .*extractors.*UNKNOWN_MODEL/);
  });

  it.each([
    ['cost.json', 'version', 3],
    ['golden.json', 'family', 'ads'],
    ['golden.json', 'cases', []],
  ])('publishes nothing that no worker could run: %s with %s', async (file, field, value) => {
    const folder = temporaryFolder();
    cpSync(RANKER_2, folder.path('2'), { recursive: true });
    const contents = JSON.parse(readFileSync(folder.path(`2/${file}`), 'utf8')) as object;
    folder.write(`2/${file}`, JSON.stringify({ ...contents, [field]: value }));
    const { err, exitCode } = await control.run('model', 'publish', folder.path('2'));
    expect(exitCode).not.toBe(0);
    expect(err).toContain(file);
    expect(err).not.toMatch(/accepted/);
  });

  it('refuses other files under a name that is taken, and says so in the log', async () => {
    const folder = temporaryFolder();
    mkdirSync(folder.path('2'));
    cpSync(RANKER_2, folder.path('2'), { recursive: true });
    appendFileSync(folder.path('2/golden.json'), '\n');
    await control.run('model', 'publish', RANKER_2);
    const { out, exitCode } = await control.run('model', 'publish', folder.path('2'));
    expect(exitCode).toBe(1);
    expect(out).toMatch(
      /^refused: PUBLISH_MODEL of model\/ranker: ranker@2 is already published with another digest/,
    );
    expect((await control.run('model', 'history')).out).toMatch(/command-refused +model\/ranker/);
  });

  it('sends nothing where the version is another than was meant', async () => {
    const wrong = await control.run('model', 'publish', RANKER_2, '--model-version', '3');
    expect(wrong).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(/another version \(got "2"; allowed: 3\)/),
    });
    const family = await control.run('model', 'publish', RANKER_2, '--family', 'ads');
    expect(family).toMatchObject({ exitCode: 2, err: expect.stringMatching(/another family/) });
    expect((await control.run('model', 'history')).out).toBe('nothing was decided about any model yet\n');
  });

  it('tells workers another place where it is told one', async () => {
    const source = 'https://models.example/ranker/2';
    const { out } = await control.run('model', 'publish', RANKER_2, '--source', source);
    expect(out).toContain('from https://models.example/ranker/2/');
  });
});

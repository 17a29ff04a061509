import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readProfile } from '../../../src/inference/profile/profile-schema.ts';
import { openRepository } from '../../../src/inference/repository/open-repository.ts';
import { millrace } from './cli.fixture.ts';
import { profiledModels } from './profiled-models.fixture.ts';

/** Its graph is no longer the file that its config means: it is in the repository, and cannot be loaded. */
function breakVersion(models: string, version: string): void {
  appendFileSync(join(models, 'toy', version, 'model.onnx'), 'cut');
}

describe('profile', () => {
  it('tells what each version takes', async () => {
    const { profile, written } = await profiledModels();
    const { out, err, exitCode } = await profile();
    expect({ err, exitCode }).toEqual({ err: '', exitCode: 0 });
    expect(out).toMatch(/^cpu: onnx-cpu, .+, Node .+, onnxruntime .+\.$/m);
    expect(out).toMatch(/^toy@1 +dense\/host +\S.* % {2,}\S+ %$/m);
    expect(out).toMatch(/^toy@2 +32 +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+$/m);
    expect(out).not.toMatch(/SIMULATED|sparse kernel|undefined|NaN/);
    expect(written()).toEqual([]);
  });

  it('prints and writes the same profile, as JSON that it reads again', async () => {
    const { profile, path, read } = await profiledModels();
    const { out, exitCode } = await profile('--json', '--out', path('cpu.json'), '--seed', '7');
    expect(exitCode).toBe(0);
    expect(out.trim().split('\n')).toHaveLength(1);
    expect(JSON.parse(out)).toEqual(JSON.parse(read('cpu.json')));
    expect(readProfile('cpu.json', read('cpu.json'))).toMatchObject({ accelerator: 'cpu', seed: 7 });
  });

  it('measures the families and versions that are named, each once', async () => {
    const { profile } = await profiledModels();
    const names = async (families: string): Promise<string[]> => {
      const { versions } = JSON.parse((await profile('--json', '--family', families)).out);
      return versions.map(({ family, version }: Record<string, string>) => `${family}@${version}`);
    };
    expect(await names('toy@2')).toEqual(['toy@2']);
    expect(await names('toy@2,toy')).toEqual(['toy@2', 'toy@1']);
  });

  it('compares the kernels of a backend that has two', async () => {
    const { profile } = await profiledModels();
    const { out } = await profile('--backend', 'sparse-cpu', '--json');
    const [version] = JSON.parse(out).versions;
    expect(version.targets.map(({ kernel }: { kernel: string }) => kernel)).toContain('dense');
    expect(Object.keys(version.refusedKernels)).toEqual(['sparse']);
    expect((await profile('--backend', 'sparse-cpu')).out).toMatch(/^toy@1 cannot be run by sparse: /m);
  });

  it('labels times that no device took', async () => {
    const { profile } = await profiledModels();
    const simulated = ['--backend', 'simulated', '--accelerator', 'gpu-a100', '--family', 'toy@1'];
    expect((await profile(...simulated)).out).toMatch(/SIMULATED.*no device was measured/);
    expect(JSON.parse((await profile(...simulated, '--json')).out)).toMatchObject({ simulated: true });
  });

  it('writes a policy that is valid on the fleet', async () => {
    const { profile, path, read } = await profiledModels();
    const { out, exitCode } = await profile('--policy', path('mine.yaml'), '--policy-name', 'mine');
    expect(exitCode).toBe(0);
    expect(out).toMatch(/\n\nwritten: .*mine\.yaml\n$/);
    const checked = await millrace(['policy', 'validate', path('mine.yaml'), '--fleet', path('fleet.yaml')]);
    expect(checked).toMatchObject({ exitCode: 0, out: expect.stringContaining('valid: mine@1') });
    expect(read('mine.yaml')).toContain('to: {accelerator: cpu, kernel: dense, memory: host}');
  });

  it('writes one for the accelerators of other profiles, too', async () => {
    const { profile, path, read } = await profiledModels();
    const gpu = ['--backend', 'simulated', '--accelerator', 'gpu-a100', '--family', 'toy@1'];
    expect((await profile(...gpu, '--out', path('gpu.json'))).exitCode).toBe(0);
    const both = await profile(
      '--with',
      path('gpu.json'),
      '--policy',
      path('both.yaml'),
      '--family',
      'toy@1',
    );
    expect(both).toMatchObject({ exitCode: 0 });
    expect(read('both.yaml')).toMatch(/^# cpu: onnx-cpu, .*toy@1\n# gpu-a100: simulated, SIMULATED.*toy@1$/m);
    expect(read('both.yaml')).toMatch(/fallback: \[(cpu|gpu-a100)\]/);
  });

  it('writes cost models that the repository reads, of the same usual rows', async () => {
    const { profile, cost, models } = await profiledModels();
    const before = await openRepository(models);
    const { out, exitCode } = await profile('--costs', '--family', 'toy@2');
    expect(exitCode).toBe(0);
    expect(out).toMatch(/\nwritten: .*toy\/2\/cost\.json\n$/);
    expect(cost('1')).toMatchObject({ machine: 'none' });
    expect(cost('2')).toMatchObject({
      ...{ family: 'toy', version: 2, features: ['1', 'N', 'T', 'N*T'], typicalRows: 4 },
      machine: expect.stringContaining('onnxruntime'),
    });
    const after = await openRepository(models);
    expect(after.refused).toEqual([]);
    const rows = ({ families }: typeof after) => families[0]?.versions.map(({ typicalRows }) => typicalRows);
    expect(rows(after)).toEqual(rows(before));
  });

  it('writes the cost model that the config names', async () => {
    const { profile, models } = await profiledModels(({ config }) => {
      config.cost = 'other.json';
    });
    for (const version of ['1', '2'])
      renameSync(join(models, 'toy', version, 'cost.json'), join(models, 'toy', version, 'other.json'));
    expect((await profile('--costs')).exitCode).toBe(0);
    expect(readFileSync(join(models, 'toy/1/other.json'), 'utf8')).toContain('onnxruntime');
  });

  it('lists a version that cannot be measured, goes on with the others, and ends with 1', async () => {
    const { profile, path, models, read } = await profiledModels();
    breakVersion(models, '1');
    const { out, exitCode } = await profile('--out', path('cpu.json'), '--policy', path('p.yaml'));
    expect(exitCode).toBe(1);
    expect(out).toMatch(/^toy@1 could not be measured: .*not the file that the config means/m);
    expect(out).toMatch(/^toy@2 +dense\/host/m);
    const { versions, failed } = readProfile('cpu.json', read('cpu.json'));
    expect(versions.map(({ version }) => version)).toEqual(['2']);
    expect(failed).toMatchObject([{ family: 'toy', version: '1' }]);
    expect(read('p.yaml')).toContain('toy@2');
  });

  it('tells why, where no version can be measured, before it refuses to make a policy of that', async () => {
    const { profile, path, models, written } = await profiledModels();
    for (const version of ['1', '2']) breakVersion(models, version);
    const { out, err, exitCode } = await profile('--policy', path('p.yaml'));
    expect(exitCode).toBe(2);
    expect(out).toMatch(/toy@1 could not be measured: .*\ntoy@2 could not be measured/);
    expect(err).toMatch(/no model version was measured/);
    expect(written()).toEqual([]);
    expect((await profile()).exitCode).toBe(1);
  });

  it.each<[string, string[], RegExp]>([
    ['an unknown family', ['--family', 'nobody'], /no such model.*got "nobody"; allowed: toy@1, toy@2/],
    ['an unknown version', ['--family', 'toy@9'], /no such model.*"toy@9"/],
    ['no family', ['--family', ''], /no model version to measure/],
    ['a backend that is none', ['--backend', 'gpu'], /backend.*gpu/i],
    ['an accelerator that is no name', ['--accelerator', ''], /--accelerator.*Allowed: a letter/],
    ['a policy name that is none', ['--policy-name', 'a\nb'], /--policy-name[\s\S]*Allowed: a letter/],
    [
      'an accelerator that is not in the fleet',
      ['--accelerator', 'mars', '--policy', 'PATH/p.yaml'],
      /fleet has no such accelerator.*"mars"; allowed: cpu, gpu-a100/,
    ],
    [
      'an accelerator that has no profile',
      ['--backend', 'simulated', '--accelerator', 'mars'],
      /no service-time profile/,
    ],
    [
      'a kernel that the fleet lacks',
      ['--backend', 'sparse-cpu', '--fleet', 'examples/fleets/one-pool.yaml', '--policy', 'PATH/p.yaml'],
      /cpu of fleet one-pool has no such kernel.*"sparse"/,
    ],
    ['a profile that is not there', ['--with', 'PATH/none.json'], /the profile cannot be read.*none\.json/],
    ['a profile that is none', ['--with', 'PATH/fleet.yaml'], /fleet\.yaml is no profile: is not JSON/],
    ['a profile without an end', ['--with', '/dev/zero'], /the profile cannot be read: it is larger than/],
    ['a folder as the profile to write', ['--out', 'PATH'], /cannot be written: it is a folder/],
    [
      'a folder that is not there',
      ['--policy', 'PATH/no/p.yaml'],
      /cannot be written: its folder does not exist/,
    ],
    [
      'a path through a file',
      ['--out', 'PATH/fleet.yaml/x.json'],
      /cannot be written: a part of its path is no folder/,
    ],
    ['models that are not there', ['--models', 'PATH/none'], /no model repository/],
    [
      'a fleet that is none',
      ['--fleet', 'PATH/models/toy/1/cost.json', '--policy', 'PATH/p.yaml'],
      /from --fleet/,
    ],
    ['a time of nothing', ['--measure-time', '0s'], /--measure-time/],
    ['a word too many', ['what'], /too many arguments/],
  ])('refuses %s before anything is measured', async (_, args, reason) => {
    const { profile, path, written } = await profiledModels();
    // It would take minutes.
    const long = args.includes('--measure-time') ? [] : ['--measure-time', '10m'];
    const { out, err, exitCode } = await profile(
      ...long,
      ...args.map((arg) => arg.replace('PATH', path('.'))),
    );
    expect(err).toMatch(reason);
    expect({ out, exitCode }).toEqual({ out: '', exitCode: 2 });
    expect(written()).toEqual([]);
  });

  it.each([
    [
      'accelerator',
      '"accelerator":"gpu-a100"',
      '"accelerator":"mars"',
      /the fleet has no such accelerator.*"mars"/,
    ],
    [
      'kernel',
      '"kernel":"dense"',
      '"kernel":"quantum"',
      /gpu-a100 of fleet .* has no such kernel.*"quantum"/,
    ],
  ])(
    'refuses a profile of another %s than the fleet has before anything is measured',
    async (_, from, to, reason) => {
      const { profile, path, read, written } = await profiledModels();
      const gpu = ['--backend', 'simulated', '--accelerator', 'gpu-a100', '--family', 'toy@1'];
      await profile(...gpu, '--out', path('gpu.json'));
      writeFileSync(path('gpu.json'), JSON.stringify(JSON.parse(read('gpu.json'))).replaceAll(from, to));
      const both = ['--with', path('gpu.json'), '--policy', path('both.yaml')];
      const { out, err, exitCode } = await profile('--measure-time', '10m', ...both);
      expect(err).toMatch(reason);
      expect({ out, exitCode }).toEqual({ out: '', exitCode: 2 });
      expect(written()).toEqual(['gpu.json']);
    },
  );

  it('refuses two profiles of the same accelerator', async () => {
    const { profile, path } = await profiledModels();
    await profile('--out', path('cpu.json'), '--family', 'toy@1');
    const { err, exitCode } = await profile('--with', path('cpu.json'));
    expect(exitCode).toBe(2);
    expect(err).toMatch(/two profiles are of the same accelerator.*"cpu".*--accelerator/);
  });

  it('says why a version that is named was refused', async () => {
    const { profile, models } = await profiledModels();
    writeFileSync(join(models, 'toy', '2', 'config.yaml'), 'format: 2');
    const { err, exitCode } = await profile('--family', 'toy@2');
    expect(exitCode).toBe(2);
    expect(err).toMatch(/toy\/2.*format/);
  });
});

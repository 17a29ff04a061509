import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { featureRelease, findCommand, findJava, parseJavaSettings } from '../../../src/local-stack/java.ts';
import { temporaryFolder, writeProgram } from './temporary-folder.ts';

/** Something that looks like an installed Java of this release, and returns its home. */
async function installJava(
  home: string,
  release: string | undefined,
  script = '#!/bin/sh\n',
): Promise<string> {
  await writeProgram(join(home, 'bin/java'), script);
  if (release !== undefined)
    await writeFile(join(home, 'release'), `IMPLEMENTOR="x"\nJAVA_VERSION="${release}"\n`);
  return home;
}

describe('featureRelease', () => {
  it.each([
    ['25.0.3', 25],
    ['21-ea', 21],
    ['21', 21],
    ['17.0.15', 17],
    ['1.8.0_402', 8],
    ['unknown', 0],
  ])('of %s is %d', (release, expected) => {
    expect(featureRelease(release)).toBe(expected);
  });
});

describe('parseJavaSettings', () => {
  it('reads home and version from what a Java prints of itself', () => {
    const output =
      'Property settings:\n    java.home = /opt/a java\n    java.version = 25.0.3\n    java.vm.name = x\n';
    expect(parseJavaSettings(output)).toEqual({ home: '/opt/a java', release: '25.0.3' });
  });

  it('is undefined for anything else', () => {
    expect(
      parseJavaSettings('The operation could not be completed. Unable to locate a Java Runtime.'),
    ).toBeUndefined();
  });
});

describe('findJava', () => {
  it('prefers JAVA_HOME to the PATH, and the PATH to the folder of JVMs', async () => {
    const folder = await temporaryFolder();
    const home = await installJava(join(folder, 'home'), '21.0.1');
    const onPath = await installJava(join(folder, 'path'), '22.0.1');
    const jvms = join(folder, 'jvms');
    const installed = await installJava(join(jvms, 'newest'), '25.0.1');
    const PATH = join(onPath, 'bin');
    expect(await findJava({ JAVA_HOME: home, PATH }, jvms)).toMatchObject({ home, release: '21.0.1' });
    expect(await findJava({ PATH }, jvms)).toMatchObject({ home: onPath, command: join(onPath, 'bin/java') });
    expect(await findJava({}, jvms)).toMatchObject({ home: installed });
  });

  it('passes over a Java that is too old, wherever it is named, and takes the newest of the others', async () => {
    const folder = await temporaryFolder();
    const old = await installJava(join(folder, 'old'), '17.0.15');
    const jvms = join(folder, 'jvms');
    await installJava(join(jvms, 'a'), '21.0.9');
    const newest = await installJava(join(jvms, 'b'), '25.0.3');
    await installJava(join(jvms, 'c'), '9.0.4');
    await installJava(join(jvms, 'd'), '25.0.2');
    expect(await findJava({ JAVA_HOME: old, PATH: join(old, 'bin') }, jvms)).toMatchObject({ home: newest });
  });

  it('asks a Java without a release file, and survives one that does not run', async () => {
    const folder = await temporaryFolder();
    const answer = '#!/bin/sh\necho "    java.home = /somewhere" >&2\necho "    java.version = 24.0.2" >&2\n';
    const stub = await installJava(join(folder, 'stub'), undefined, answer);
    const broken = await installJava(join(folder, 'broken'), undefined, '#!/bin/sh\nexit 1\n');
    const none = join(folder, 'none');
    expect(await findJava({ PATH: join(stub, 'bin') }, none)).toMatchObject({
      home: '/somewhere',
      release: '24.0.2',
    });
    expect(await findJava({ PATH: join(broken, 'bin') }, none)).toBeUndefined();
  });

  it('is undefined where there is none', async () => {
    expect(await findJava({ JAVA_HOME: '', PATH: '' }, '/nonexistent')).toBeUndefined();
  });
});

describe('findCommand', () => {
  it('takes the first executable of the name on the PATH', async () => {
    const folder = await temporaryFolder();
    await writeProgram(join(folder, 'b/tool'), '');
    await writeProgram(join(folder, 'c/tool'), '');
    await writeFile(join(folder, 'tool'), 'not executable');
    const PATH = [folder, join(folder, 'missing'), join(folder, 'b'), join(folder, 'c')].join(':');
    expect(await findCommand('tool', { PATH })).toBe(join(folder, 'b/tool'));
    expect(await findCommand('tool', {})).toBeUndefined();
  });
});

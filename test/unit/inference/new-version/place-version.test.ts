import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { placeVersion } from '../../../../src/inference/new-version/place-version.ts';

function repository(): string {
  const root = mkdtempSync(join(tmpdir(), 'millrace-place-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return join(root, 'models');
}

const version = (text: string, replace = true) => ({
  replace,
  family: 'feed',
  version: '1',
  files: new Map([['config.yaml', text]]),
});
const accept = () => Promise.resolve();

describe('placing a version', () => {
  it('checks it before anybody sees it', async () => {
    const root = repository();
    const folder = await placeVersion(root, version('new'), (staging) => {
      expect(readFileSync(join(staging, 'feed/1/config.yaml'), 'utf8')).toBe('new');
      expect(existsSync(join(root, 'feed'))).toBe(false);
      return Promise.resolve();
    });
    expect(folder).toBe(join(root, 'feed/1'));
    expect(readdirSync(root)).toEqual(['feed']);
    expect(readFileSync(join(folder, 'config.yaml'), 'utf8')).toBe('new');
  });

  it('replaces one that is there, and none of it stays', async () => {
    const root = repository();
    mkdirSync(join(root, 'feed/1'), { recursive: true });
    writeFileSync(join(root, 'feed/1/old.bin'), 'old');
    await placeVersion(root, version('new'), accept);
    expect(readdirSync(join(root, 'feed/1'))).toEqual(['config.yaml']);
    expect(readdirSync(root)).toEqual(['feed']);
  });

  it('leaves everything as it was where the check fails', async () => {
    const root = repository();
    await placeVersion(root, version('old'), accept);
    const refuse = () => Promise.reject(new Error('refused'));
    await expect(placeVersion(root, version('new'), refuse)).rejects.toThrow('refused');
    expect(readFileSync(join(root, 'feed/1/config.yaml'), 'utf8')).toBe('old');
    expect(readdirSync(root)).toEqual(['feed']);
  });

  it('never replaces one unless it is told to, also where it came while this one was checked', async () => {
    const root = repository();
    const come = () => placeVersion(root, version('theirs'), accept).then(() => undefined);
    await expect(placeVersion(root, version('mine', false), come)).rejects.toThrow(
      /is there already.*feed\/1/,
    );
    expect(readFileSync(join(root, 'feed/1/config.yaml'), 'utf8')).toBe('theirs');
    expect(readdirSync(root)).toEqual(['feed']);
  });

  it('puts back what was there where the new one cannot be moved', async () => {
    const root = repository();
    await placeVersion(root, version('old'), accept);
    const lose = (staging: string) => Promise.resolve(rmSync(join(staging, 'feed'), { recursive: true }));
    await expect(placeVersion(root, version('new'), lose)).rejects.toThrow(/ENOENT/);
    expect(readFileSync(join(root, 'feed/1/config.yaml'), 'utf8')).toBe('old');
    expect(readdirSync(root)).toEqual(['feed']);
  });
});

import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/adapters/system/clock.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { anyModelSource } from '../../../src/wiring/model-source.ts';
import { signatureProblem } from '../../conformance/aws-signature.ts';
import { readAll } from '../../conformance/model-source.suite.ts';

const key = {
  accessKeyId: 'MILLRACE',
  secretAccessKey: 'of the test',
  region: 'eu-test-1',
  sessionToken: 'a token',
};

/** A store that answers what it thinks of the signature. */
async function openStore(): Promise<string> {
  const server = createServer(({ method = '', url: target = '', headers }, response) => {
    response.end(signatureProblem({ method, target, headers }, key, Date.now()) ?? 'signed');
  });
  onTestFinished(() => server.close().closeAllConnections());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

it('sources are read by their kind, and those of the stores in the settings by signed requests', async () => {
  const [store, other] = [await openStore(), await openStore()];
  const folder = await mkdtemp(join(tmpdir(), 'millrace-source-'));
  await writeFile(join(folder, 'model.onnx'), 'of a folder');
  const { settings } = loadSettings({
    MILLRACE_S3_ORIGINS: `https://elsewhere.example,${store}`,
    MILLRACE_S3_REGION: key.region,
    MILLRACE_S3_ACCESS_KEY_ID: key.accessKeyId,
    MILLRACE_S3_SECRET_ACCESS_KEY: key.secretAccessKey,
    MILLRACE_S3_SESSION_TOKEN: key.sessionToken,
  });
  const source = anyModelSource(settings, systemClock());
  const read = async (place: string): Promise<string> =>
    (await readAll(source, place, 'model.onnx')).toString();
  expect(await read(`${store}/bucket/ranker/3`)).toBe('signed');
  expect(await read(`${other}/bucket/ranker/3`)).toBe('AccessDenied');
  expect(await read(folder)).toBe('of a folder');
  expect(await read(pathToFileURL(folder).href)).toBe('of a folder');
});

it('stores without a key are a fault of the settings', () => {
  const { settings } = loadSettings({ MILLRACE_S3_ORIGINS: 'https://models.example' });
  expect(() => anyModelSource(settings, systemClock())).toThrow(/there is no key.*s3\.secretAccessKey/);
});

import { mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { folderModelSource } from '../../src/adapters/model-source/folder.ts';
import { httpModelSource } from '../../src/adapters/model-source/http.ts';
import { s3Signer } from '../../src/adapters/model-source/s3-signer.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import { signatureProblem } from './aws-signature.ts';
import { modelSourceSuite, readAll, refusal } from './model-source.suite.ts';

async function folderOf(files: Readonly<Record<string, Uint8Array>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-source-'));
  for (const [name, bytes] of Object.entries(files)) await writeFile(join(folder, name), bytes);
  return folder;
}

describe('a folder', () => {
  modelSourceSuite(async () => ({
    source: folderModelSource(),
    place: folderOf,
    nowhere: join(tmpdir(), 'millrace-nowhere', 'ranker'),
  }));

  it('follows a link within itself, and none out of it', async () => {
    const folder = await folderOf({ real: Buffer.from('x') });
    await symlink(join(folder, 'real'), join(folder, 'within'));
    await symlink('/etc/hostname', join(folder, 'out'));
    await mkdir(join(folder, 'folder'));
    const source = folderModelSource();
    expect((await readAll(source, folder, 'within')).toString()).toBe('x');
    expect(await refusal(readAll(source, folder, 'out'))).toBe('INVALID_MODEL');
    expect(await refusal(readAll(source, folder, 'folder'))).toBe('INVALID_MODEL');
  });
});

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

describe('a place on an S3-compatible store that takes signed requests only', () => {
  const key = { accessKeyId: 'MILLRACE', secretAccessKey: 'a secret/+of 40 characters', region: 'eu-test-1' };

  /** A store with these objects, by path; it refuses as S3 does. */
  async function store(objects: Map<string, Uint8Array>, sessionToken?: string): Promise<string> {
    return serve((request, response) => {
      const { method = '', url: target = '', headers } = request;
      const known = { ...key, ...(sessionToken === undefined ? {} : { sessionToken }) };
      const problem = signatureProblem({ method, target, headers }, known, Date.now());
      const contents = objects.get(target.split('?')[0] ?? '');
      if (problem !== undefined) response.writeHead(403).end(`<Error><Code>${problem}</Code></Error>`);
      else if (contents === undefined) response.writeHead(404).end('<Error><Code>NoSuchKey</Code></Error>');
      else response.writeHead(200).end(contents);
    });
  }

  const sourceOf = (origin: string, fields: Partial<typeof key> & { sessionToken?: string } = {}) =>
    httpModelSource({
      sign: s3Signer({ origins: [origin], sessionToken: '', clock: systemClock(), ...key, ...fields }),
    });

  modelSourceSuite(async () => {
    const objects = new Map<string, Uint8Array>();
    const origin = await store(objects);
    return {
      source: sourceOf(origin),
      place: async (files) => {
        for (const [name, bytes] of Object.entries(files)) objects.set(`/bucket/ranker/3/${name}`, bytes);
        return `${origin}/bucket/ranker/3/`;
      },
      nowhere: `${origin}/bucket/ranker/9/`,
    };
  });

  it('is read by temporary credentials, and by names that need to be encoded', async () => {
    const path = '/bucket/models%20of%20(a)/~b$/%C3%A9/model.onnx';
    const origin = await store(new Map([[path, Buffer.from('x')]]), 'session/token==');
    const source = sourceOf(origin, { sessionToken: 'session/token==' });
    expect((await readAll(source, `${origin}/bucket/models of (a)/~b$/é/`, 'model.onnx')).toString()).toBe(
      'x',
    );
    expect(
      (
        await readAll(source, `${origin}/bucket/models of (a)/~b$/é/?versionId=a%2Fb(c)`, 'model.onnx')
      ).toString(),
    ).toBe('x');
  });

  it.each([
    ['another secret', { secretAccessKey: 'another' }],
    ['another key', { accessKeyId: 'SOMEBODY' }],
    ['another region', { region: 'eu-test-2' }],
    ['a token that is none', { sessionToken: 'stale' }],
  ])('refuses %s, which may be mended there or here', async (_what, fields) => {
    const origin = await store(new Map([['/bucket/model.onnx', Buffer.from('x')]]));
    const reading = readAll(sourceOf(origin, fields), `${origin}/bucket/`, 'model.onnx');
    expect(await refusal(reading)).toBe('MODEL_UNAVAILABLE');
    await expect(reading).rejects.toThrow(/the server answers 403/);
  });

  it('signs again where it is redirected within the store, and sends nothing to any other', async () => {
    const seen: (string | undefined)[] = [];
    const other = await serve(({ headers }, response) => {
      seen.push(headers.authorization);
      response.writeHead(200).end('x');
    });
    const moved = await store(new Map([['/moved/model.onnx', Buffer.from('x')]]));
    const origin = await serve((request, response) => {
      const to = request.url === '/within/model.onnx' ? `${origin}/moved/model.onnx` : `${other}/model.onnx`;
      if (request.url !== '/moved/model.onnx') response.writeHead(307, { location: to }).end();
      else {
        const { method = '', url: target = '', headers } = request;
        const problem = signatureProblem({ method, target, headers }, key, Date.now());
        response.writeHead(problem === undefined ? 200 : 403).end('x');
      }
    });
    expect((await readAll(sourceOf(origin), `${origin}/within/`, 'model.onnx')).toString()).toBe('x');
    expect(await refusal(readAll(sourceOf(origin), `${origin}/out/`, 'model.onnx'))).toBe('INVALID_MODEL');
    expect(await readAll(sourceOf(moved), `${other}/`, 'model.onnx')).toBeDefined();
    expect(seen).toEqual([undefined]);
  });
});

describe('a place on an HTTP server', () => {
  modelSourceSuite(async () => ({
    source: httpModelSource(),
    place: async (files) => {
      const origin = await serve(({ url = '' }, response) => {
        const contents = files[url.replace('/ranker/3/', '')];
        if (contents === undefined) response.writeHead(404).end();
        else response.writeHead(200).end(contents);
      });
      return `${origin}/ranker/3/`;
    },
    nowhere: 'http://127.0.0.1:9/ranker/3/',
  }));

  it.each([401, 403, 404, 429, 500, 503])('that answers %i may answer otherwise later', async (status) => {
    const origin = await serve((_, response) => response.writeHead(status).end('no'));
    expect(await refusal(readAll(httpModelSource(), `${origin}/`, 'model.onnx'))).toBe('MODEL_UNAVAILABLE');
  });

  it('that falls silent is given up', async () => {
    const origin = await serve((_, response) => response.writeHead(200).write('begun'));
    const source = httpModelSource({ silenceMs: 50 });
    const reading = readAll(source, `${origin}/`, 'model.onnx');
    await expect(reading).rejects.toThrow(/nothing came for 50 ms/);
    expect(await refusal(readAll(source, `${origin}/`, 'model.onnx'))).toBe('MODEL_UNAVAILABLE');
  });

  it('that breaks off has not sent the file', async () => {
    const origin = await serve((_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('begun');
      setTimeout(() => response.destroy(), 20);
    });
    expect(await refusal(readAll(httpModelSource(), `${origin}/`, 'model.onnx'))).toBe('MODEL_UNAVAILABLE');
  });

  it.each([301, 302, 303, 307, 308])('may redirect by %i within its origin', async (status) => {
    const asked: string[] = [];
    const origin = await serve(({ url = '' }, response) => {
      asked.push(url);
      if (url.startsWith('/moved/')) response.writeHead(200).end('x');
      else response.writeHead(status, { location: `/moved${url}` }).end('elsewhere');
    });
    expect((await readAll(httpModelSource(), `${origin}/3/`, 'model.onnx')).toString()).toBe('x');
    expect(asked).toEqual(['/3/model.onnx', '/moved/3/model.onnx']);
  });

  it.each<[string, (inside: string) => string]>([
    ['another port of its host', (inside) => `${inside}/secrets`],
    ['another host', () => 'http://localhost:9/secrets?token=secret'],
    ['another scheme', () => 'https://127.0.0.1:9/secrets'],
    ['an address without a scheme', (inside) => `${inside.replace('http:', '')}/secrets`],
    ['no HTTP', () => 'file:///etc/passwd'],
    ['nonsense', () => 'http://'],
  ])('may not redirect to %s', async (_where, locationOf) => {
    const asked: string[] = [];
    const inside = await serve(({ url = '' }, response) => {
      asked.push(url);
      response.writeHead(200).end('what only this network sees');
    });
    const origin = await serve((_, response) =>
      response.writeHead(302, { location: locationOf(inside) }).end(),
    );
    const reading = readAll(httpModelSource(), `${origin}/3/?signature=hidden`, 'model.onnx');
    expect(await refusal(reading)).toBe('INVALID_MODEL');
    await expect(reading).rejects.toThrow(
      /3\/model\.onnx is redirected out of the place that was published .*allowed: http.*Publish the version/,
    );
    await expect(reading).rejects.not.toThrow(/secret|hidden/);
    expect(asked).toEqual([]);
  });

  it('may redirect to its own origin with no name and no password in it', async () => {
    const origin: string = await serve(({ url = '' }, response) => {
      const location = `${origin.replace('http://', 'http://user:secret@')}/x${url}`;
      response.writeHead(302, { location }).end();
    });
    const reading = readAll(httpModelSource(), `${origin}/3/`, 'model.onnx');
    expect(await refusal(reading)).toBe('INVALID_MODEL');
    await expect(reading).rejects.not.toThrow(/secret/);
  });

  it('may not redirect without end', async () => {
    let asked = 0;
    const origin = await serve(({ url = '' }, response) => {
      asked += 1;
      response.writeHead(302, { location: url }).end();
    });
    const reading = readAll(httpModelSource(), `${origin}/3/`, 'model.onnx');
    expect(await refusal(reading)).toBe('INVALID_MODEL');
    await expect(reading).rejects.toThrow(/redirects without end .*allowed: 5 redirects/);
    expect(asked).toBe(6);
  });

  it('keeps its query, which may be a signature, and tells nobody of it', async () => {
    const asked: string[] = [];
    const origin = await serve(({ url = '' }, response) => {
      asked.push(url);
      response.writeHead(url.includes('absent') ? 403 : 200).end('x');
    });
    const source = httpModelSource();
    await readAll(source, `${origin}/3/?X-Amz-Signature=secret`, 'model.onnx');
    expect(asked).toEqual(['/3/model.onnx?X-Amz-Signature=secret']);
    const refused = readAll(source, `${origin}/3/?X-Amz-Signature=secret`, 'absent');
    await expect(refused).rejects.toThrow(/3\/absent/);
    await expect(refused).rejects.not.toThrow(/secret/);
  });
});

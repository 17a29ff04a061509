import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateEd25519 } from '../../src/adapters/system/ed25519.ts';
import type { ScoredResult } from '../../src/contracts/records.ts';
import type { Stack } from '../../src/local-stack/stack.ts';
import { startStack } from '../../src/local-stack/start-stack.ts';
import { cutGraph, edit, expectNaN, rankerVersion } from '../unit/inference/ranker-version.ts';
import { type Load, moreResults, startLoad } from './load.ts';
import { eventually, type PlannedProcess, type RealPipeline, startRealPipeline } from './real-pipeline.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-versions-'));
let stack: Stack;
let pipeline: RealPipeline;
let load: Load;
let server: Server;
/** Of every result that came, oldest first. */
const served: { version: string; arm: string; outcome: string; reason: string }[] = [];

/** Of each window of a version in shadow. */
const shadowed: string[] = [];

interface Ran {
  code: number;
  out: string;
  err: string;
}

/** Who may publish. Routers and workers take nothing unsigned; the controller does, as a step over a hold needs a second person otherwise. */
const keyFile = join(folder, 'ana.pem');
const keys = join(folder, 'keys.yaml');
const { privateKeyPem, publicKey } = generateEd25519();
writeFileSync(keyFile, privateKeyPem, { mode: 0o600 });
writeFileSync(
  keys,
  `keys: [{keyId: ana, role: person, publicKey: ${Buffer.from(publicKey).toString('base64')}, scopes: ["*"]}]`,
);

/** The command as anybody runs it; what publishes is signed. */
function millrace(...given: string[]): Promise<Ran> {
  const args = given.includes('publish') ? [...given, '--key', keyFile] : given;
  const env = { ...process.env, ...stack.environment, MILLRACE_PREFIX: pipeline.settings.prefix, ...POLICY };
  return new Promise((resolve) => {
    execFile(process.execPath, ['bin/millrace.js', ...args], { env }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    );
  });
}

async function accepted(...args: string[]): Promise<string> {
  const ran = await millrace(...args);
  console.info(`$ millrace ${args.join(' ')}\n${ran.out}`);
  expect(ran, args.join(' ')).toMatchObject({ code: 0 });
  return ran.out;
}

const POLICY = { MILLRACE_FLEET: 'examples/fleets/one-pool.yaml' };

function policy(version: number, models = ''): string {
  const path = join(folder, `policy-${version}.yaml`);
  writeFileSync(
    path,
    `
apiVersion: millrace/v1
kind: RoutingPolicy
name: versions
version: ${version}
${models}
tree:
  - {id: everything, to: {accelerator: cpu, kernel: dense, memory: host}}
rollout: {shadow: 2s, canary: {percent: 50, dwell: 2s}, ramp: [], unit: requestId}
`,
  );
  return path;
}

function worker(name: string, slots: string): PlannedProcess {
  return {
    name,
    service: 'accelerator-worker',
    environment: {
      MILLRACE_WORKER_NAME: name,
      MILLRACE_WORKER_POOL: 'cpu',
      MILLRACE_WORKER_SLOTS: slots,
      MILLRACE_WORKER_MODEL_CACHE: join(folder, `cache-${name}`),
    },
  };
}

/** The versions of the next results, each with the arm that decided: `STABLE 1`, `CANARY 3`. */
async function nextVersions(count: number): Promise<string[]> {
  const from = served.length;
  await eventually(() => served.length >= from + count, `${count} more results`, 120_000);
  return [...new Set(served.slice(from).map(({ arm, version }) => `${arm} ${version}`))].sort();
}

beforeAll(async () => {
  cpSync('models/repository/ranker/1', join(folder, 'models/ranker/1'), { recursive: true });
  stack = await startStack();
  pipeline = await startRealPipeline(stack.environment, {
    environment: {
      MILLRACE_MODELS: join(folder, 'models'),
      MILLRACE_POLICY: policy(1),
      MILLRACE_CONTROLLER_KEYS: keys,
      MILLRACE_CONTROLLER_LOOK_MS: '1000',
      MILLRACE_CONTROLLER_SHADOW_REQUESTS_MIN: '100',
    },
    processes: [
      {
        name: 'controller',
        service: 'policy-controller',
        environment: { MILLRACE_CONTROLLER_ACCEPT_UNSIGNED: 'true' },
      },
      { name: 'extractor', service: 'feature-extractor' },
      { name: 'router', service: 'request-router' },
      worker('worker-1', '0,1'),
      worker('worker-2', '2,3'),
    ],
  });
  const { bus, codecs, topics } = pipeline.client;
  const codec = codecs.for('ScoredResult');
  const take = (result: ScoredResult): void => {
    const { modelVersion, policy: decided, outcome, reason } = result;
    served.push({
      version: modelVersion ?? '',
      arm: decided?.arm ?? '',
      outcome,
      reason: reason?.message ?? '',
    });
  };
  await bus.read({ topics: [topics.fixed('scored-results')], startAt: 'earliest' }, (records) => {
    for (const { value } of records) {
      const decoded = codec.decode(value);
      if (decoded.status === 'ok') take(decoded.value);
      else if (decoded.status === 'schema-unknown') void codecs.learn(decoded);
    }
  });
  const windowCodec = codecs.for('WorkerWindow');
  await bus.read({ topics: [topics.fixed('latency-metrics')], startAt: 'earliest' }, (records) => {
    for (const { value } of records) {
      const decoded = windowCodec.decode(value);
      if (decoded.status === 'schema-unknown') void codecs.learn(decoded);
      else if (decoded.status === 'ok' && decoded.value.shadow)
        shadowed.push(
          `${decoded.value.model}@${decoded.value.modelVersion} ${decoded.value.heads.length} heads`,
        );
    }
  });
  load = await startLoad(pipeline.client);
  await moreResults(load.ledger, 30);
  await accepted('policy', 'publish', policy(1));
  server = createServer(({ url = '' }, response) => {
    const missing = (): void => void response.writeHead(404).end();
    import('node:fs').then(({ createReadStream }) =>
      createReadStream(join(folder, 'web', url))
        .on('error', missing)
        .pipe(response),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  await load?.end();
  await pipeline?.close();
  await stack?.stop();
  server?.close().closeAllConnections();
});

const LIVE_AGAINST_ALL = ['--to-live', '--before-passed', '--over-hold'];

describe('a model version', { timeout: 600_000 }, () => {
  it('is published, ready on every worker, and rolled out by shadow, canary and live without an error', async () => {
    const address = server.address();
    const origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    rankerVersion(join(folder, 'web'), '3');
    const published = await accepted('model', 'publish', `${origin}/3/`, '--family', 'ranker');
    expect(published).toMatch(
      /^accepted: model-published in model\/ranker, epoch \d+, term 1: ranker@3 sha256:/,
    );
    const ready = await accepted('model', 'status', 'ranker', '--model-version', '3', '--wait', '120s');
    expect(ready.match(/ranker@3 +baseline +READY +cpu +worker-[12]/g)).toHaveLength(2);
    expect(await nextVersions(60)).toEqual(['STABLE 1']);

    const named = policy(2, 'models: {ranker: 3}');
    await accepted('policy', 'publish', named);
    await accepted('policy', 'rollout', 'start', 'versions', '--policy-version', '2');
    expect(await nextVersions(120)).toEqual(['STABLE 1']);
    await eventually(() => shadowed.includes('ranker@3 2 heads'), 'version 3 scores in shadow');
    await accepted('policy', 'rollout', 'promote', 'versions', '--before-passed', '--over-hold');
    await eventually(() => served.at(-1)?.arm === 'CANARY' || served.at(-2)?.arm === 'CANARY', 'a canary');
    expect(await nextVersions(120)).toEqual(['CANARY 3', 'STABLE 1']);
    await accepted('policy', 'rollout', 'promote', 'versions', ...LIVE_AGAINST_ALL);
    await eventually(async () => (await nextVersions(20)).join() === 'STABLE 3', 'only version 3 serves');
    const { code } = await millrace('control', 'replay');
    expect(code).toBe(0);
  });

  it('that is live serves a worker’s restart from its first request on', async () => {
    const from = served.length;
    await pipeline.kill('worker-2');
    await pipeline.start('worker-2');
    expect(await nextVersions(200)).toEqual(['STABLE 3']);
    expect(served.slice(from).filter(({ outcome }) => outcome !== 'SCORED')).toEqual([]);
  });

  it.each([
    [
      '4',
      'its file is another than was published',
      (at: string) => edit(at, 'golden.json', (text) => `${text} `),
      /golden\.json is larger than was published/,
    ],
    ['5', 'its graph is cut off', undefined, /not a whole ONNX file/],
    ['6', 'a golden case gives something else', undefined, /golden case \S+ gives .* not NaN/],
  ] as const)(
    '%s is refused where %s, and the one before goes on serving',
    async (version, _how, spoil, why) => {
      const at = rankerVersion(join(folder, 'shared'), version);
      if (version === '5') cutGraph(at);
      if (version === '6') expectNaN(at);
      const good = join(folder, 'good', version);
      cpSync(at, good, { recursive: true });
      spoil?.(at);
      await accepted('model', 'publish', good, '--source', at);
      const status = await millrace(
        'model',
        'status',
        'ranker',
        '--model-version',
        version,
        '--wait',
        '120s',
      );
      console.info(status.out);
      expect(status.code).toBe(1);
      const lines = status.out.split('\n').filter((line) => line.includes('FAILED'));
      expect(lines).toHaveLength(2);
      for (const line of lines) expect(line).toMatch(why);
      const refused = await millrace(
        'policy',
        'publish',
        policy(10 + Number(version), `models: {ranker: ${version}}`),
      );
      expect(refused.code).toBe(1);
      expect(refused.out).toMatch(
        /names model versions that are not ready: worker-[12] \(pool cpu\) refuses ranker@/,
      );
      expect(await nextVersions(60)).toEqual(['STABLE 3']);
    },
  );

  it('is refused by name where nobody published it', async () => {
    const refused = await millrace('policy', 'publish', policy(20, 'models: {ranker: 99}'));
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.out).toMatch(
      /worker-1 \(pool cpu\) has not heard of ranker@99; worker-2 \(pool cpu\) has not/,
    );
  });

  it('goes back to the one before by a rollback, and all the while nobody got an error', async () => {
    await accepted('policy', 'rollout', 'rollback', 'versions');
    await eventually(async () => (await nextVersions(20)).join() === 'STABLE 1', 'version 1 serves again');
    const { outcomes, inFlight, unknown } = await load.end();
    expect({ ...outcomes, scored: 0, inFlight, unknown }).toEqual({
      ...{ scored: 0, degraded: 0, expired: 0, rejected: 0, deadLettered: 0 },
      ...{ inFlight: 0, unknown: 0 },
    });
    expect(served.filter(({ outcome }) => outcome !== 'SCORED')).toEqual([]);
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  makeModelServed,
  makePoolStatus,
  makePublishedVersion,
  type PoolStatus,
} from '../../../src/contracts/records.ts';
import { recordTopics } from '../../../src/contracts/topic-specs.ts';
import { type MemoryInstallation, memoryInstallation } from '../client/memory-installation.ts';
import { INSTALLATION, millrace } from './cli.fixture.ts';

type Version = Partial<Parameters<typeof makePublishedVersion>[0]>;

function heartbeat(worker: string, published: Version[]): PoolStatus {
  return makePoolStatus({
    pool: 'cpu',
    capacityClass: 'DEDICATED',
    worker,
    incarnation: `${worker} life`,
    accelerator: 'cpu',
    backend: 'onnx-cpu',
    models: [makeModelServed({ family: 'ranker', version: '1', variant: 'BASELINE' })],
    published: published.map((each) =>
      makePublishedVersion({ family: 'ranker', version: '3', digest: 'sha256:ab', ...each }),
    ),
  });
}

let installation: MemoryInstallation;
let beating: () => void;
let statuses: PoolStatus[] = [];

beforeEach(async () => {
  installation = await memoryInstallation();
  const connection = await installation.open();
  await connection.codecs.register(recordTopics({ topics: connection.topics, tenants: [], pools: [] }));
  beating = connection.clock.every(50, () => {
    for (const status of statuses)
      void connection.bus.produce({
        topic: connection.topics.fixed('pool-status'),
        partition: 0,
        key: Buffer.from(status.worker),
        value: connection.codecs.for('PoolStatus').encode(status),
      });
  });
});
afterEach(async () => {
  beating();
  statuses = [];
  await installation.close();
});

const run = (...args: string[]) =>
  millrace(['model', 'status', ...args], {
    environment: INSTALLATION,
    transport: () => ({ open: () => installation.open() }),
  });

describe('model status', () => {
  it('shows what each worker says of each version', async () => {
    statuses = [
      heartbeat('w1', [{ status: 'READY', variant: 'ENHANCED' }]),
      heartbeat('w2', [{ status: 'FAILED', reason: 'golden case 1 gives NaN' }]),
    ];
    const { out, exitCode } = await run('ranker');
    expect(exitCode).toBe(0);
    expect(out.replaceAll(/ +/g, ' ')).toBe(
      [
        'version variant status pool worker reason',
        'ranker@1 baseline FOLDER cpu w1',
        'ranker@1 baseline FOLDER cpu w2',
        'ranker@3 enhanced READY cpu w1',
        'ranker@3 FAILED cpu w2 golden case 1 gives NaN',
        '',
      ].join('\n'),
    );
  });

  it('notes a family that no folder has: extractors refuse requests for it', async () => {
    statuses = [heartbeat('w1', [{ status: 'READY' }, { family: 'glm', version: '1', status: 'READY' }])];
    const { out, err, exitCode } = await run();
    expect(exitCode).toBe(0);
    expect(out).toMatch(/glm@1 .*READY/);
    expect(err).toMatch(/note: no worker has a version of glm in its model folder.*UNKNOWN_MODEL/);
    expect(err).not.toContain('ranker');
    expect((await run('ranker')).err).not.toContain('glm');
  });

  it('of one version says by its exit code whether all can run it', async () => {
    statuses = [heartbeat('w1', [{ status: 'READY' }]), heartbeat('w2', [])];
    const absent = await run('ranker', '--model-version', '3', '--json');
    expect(absent.exitCode).toBe(1);
    expect(
      absent.out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).status),
    ).toEqual(['READY', 'ABSENT']);
    statuses = [heartbeat('w1', [{ status: 'READY' }]), heartbeat('w2', [{ status: 'READY' }])];
    expect((await run('ranker', '--model-version', '3')).exitCode).toBe(0);
  });

  it('waits until every worker has made up its mind', async () => {
    statuses = [heartbeat('w1', [{ status: 'LOADING' }])];
    const waiting = run('ranker', '--model-version', '3', '--wait', '30s');
    setTimeout(() => {
      statuses = [heartbeat('w1', [{ status: 'READY' }])];
    }, 1_500);
    expect((await waiting).exitCode).toBe(0);
  });

  it('names the families that there are where it is asked for another', async () => {
    statuses = [heartbeat('w1', [])];
    const { out, err, exitCode } = await run('rankr');
    expect({ out, exitCode }).toEqual({ out: '', exitCode: 2 });
    expect(err).toContain(
      'no worker knows a model family of this name (got "rankr"; allowed: ranker). Did you mean "ranker"?',
    );
  });

  it('says so where nobody says anything', async () => {
    const { out, exitCode } = await run('ads');
    expect({ out, exitCode }).toEqual({
      out: 'no worker said anything: is the pipeline running, and MILLRACE_PREFIX right?\n',
      exitCode: 0,
    });
    expect((await run('ads', '--model-version', '1')).exitCode).toBe(1);
  });
});

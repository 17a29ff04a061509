import fs, { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/adapters/system/clock.ts';
import { CaptureJoin, type CorpusLine, DECISION_WAIT_MS } from '../../../src/cli/capture-join.ts';
import { createCodecs } from '../../../src/contracts/codec.ts';
import {
  makePolicyDecision,
  makeRoutableRequest,
  type PolicyDecision,
  type RoutableRequest,
} from '../../../src/contracts/records.ts';
import {
  INGRESS,
  type MemoryInstallation,
  memoryInstallation,
  scored,
} from '../client/memory-installation.ts';
import { INSTALLATION, millrace } from './cli.fixture.ts';

/** Until the test is over: a disk that takes half of what is appended, and is full then. */
function fillDisk(): void {
  const append = fs.appendFileSync;
  // Also for modules that were loaded before.
  fs.appendFileSync = (path, data, options) => {
    append(path, data.slice(0, data.length / 2), options);
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  };
  syncBuiltinESMExports();
  onTestFinished(() => {
    fs.appendFileSync = append;
    syncBuiltinESMExports();
  });
}

const FEATURES = 'millrace.features.v1';
const DIGEST = `sha256:${'a'.repeat(64)}`;
const SECRET = 'tensor-bytes-of-a-person';

function request(offset: number, rest: Partial<RoutableRequest> = {}): RoutableRequest {
  return makeRoutableRequest({
    requestId: `id-of-${offset}`,
    identity: { topic: INGRESS, partition: 0, offset },
    model: 'ranker',
    signals: { sparsityRatio: 0.8, predictedCostMs: 0.2 },
    context: { surface: 'feed' },
    bucketKey: 'user-4711',
    candidateCount: 2,
    baselineCandidates: 2,
    payload: Buffer.from(SECRET),
    ...rest,
  });
}

function decision(leaf: string, arm: PolicyDecision['arm'] = 'STABLE'): PolicyDecision {
  return makePolicyDecision({ digest: DIGEST, name: 'starter', version: 1, epoch: 3, leaf, arm });
}

describe('millrace capture', () => {
  let installation: MemoryInstallation;
  let folder: string;
  let file: string;

  beforeEach(async () => {
    installation = await memoryInstallation();
    folder = mkdtempSync(join(tmpdir(), 'capture-'));
    file = join(folder, 'corpus.jsonl');
  });

  afterEach(async () => {
    rmSync(folder, { recursive: true });
    await installation.close();
  });

  function capture(args: readonly string[], interruption = new AbortController().signal) {
    return millrace(['capture', '--out', file, ...args], {
      environment: INSTALLATION,
      transport: () => ({ open: () => installation.open() }),
      interruption: () => interruption,
    });
  }

  async function send(...requests: readonly RoutableRequest[]): Promise<void> {
    const codecs = createCodecs({ registry: installation.registry, clock: systemClock() });
    await codecs.register([
      [
        FEATURES,
        {
          record: 'RoutableRequest',
          schema: '',
          compatibility: 'FULL_TRANSITIVE',
          partitions: 'many',
          retentionMs: 1,
          compacted: false,
        },
      ],
    ]);
    const bus = installation.connectBus();
    for (const one of requests) {
      const value = codecs.for('RoutableRequest').encode(one);
      await bus.produce({ topic: FEATURES, partition: 0, key: Buffer.from(one.requestId), value });
    }
    await bus.close();
  }

  async function decide(
    offset: number,
    policy: PolicyDecision | null,
    requestId = `id-of-${offset}`,
  ): Promise<void> {
    await installation.publish(scored(requestId, offset, { policy }), 0);
  }

  const lines = (): CorpusLine[] =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));

  it('joins requests and decisions by identity, and writes nothing else of a request', async () => {
    await send(
      request(0),
      request(1, { context: {}, signals: { sparsityRatio: Number.NaN, hint: Number.POSITIVE_INFINITY } }),
    );
    await decide(1, decision('rest', 'CANARY'), 'another id');
    await decide(0, decision('sparse'));
    const { out, err, exitCode } = await capture(['--from-beginning', '--max', '2']);
    expect(err).toBe('');
    expect(exitCode).toBe(0);
    expect(lines()).toHaveLength(2);
    expect(lines()).toContainEqual({
      signals: { sparsityRatio: 0.8, predictedCostMs: 0.2 },
      context: { surface: 'feed' },
      leaf: 'sparse',
      arm: 'STABLE',
      digest: DIGEST,
    });
    expect(lines()).toContainEqual({
      signals: { sparsityRatio: null, hint: Number.MAX_VALUE },
      leaf: 'rest',
      arm: 'CANARY',
      digest: DIGEST,
    });
    expect(out).toBe(
      `2 requests in ${file}: 2 with their decision, 0 without\n  rest 1 (50.0 %)\n  sparse 1 (50.0 %)\n`,
    );
    const text = readFileSync(file, 'utf8');
    for (const secret of [SECRET, 'user-4711', 'id-of-']) expect(text).not.toContain(secret);
    expect(statSync(file).mode & 0o077).toBe(0);
  });

  it('is a corpus that policy diff reads', async () => {
    await send(request(0), request(1, { signals: { sparsityRatio: 0.1, predictedCostMs: Number.NaN } }));
    for (const offset of [0, 1]) await decide(offset, decision('sparse'));
    await capture(['--from-beginning', '--max', '2']);
    const { out, exitCode } = await millrace(
      [
        'policy',
        'diff',
        'examples/policies/starter.yaml',
        'examples/policies/starter.yaml',
        '--corpus',
        file,
        '--json',
      ],
      { environment: {} },
    );
    expect(exitCode).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ requests: 2, changed: 0, corpus: file });
  });

  it('takes the first --max, and a request that comes twice once', async () => {
    await send(request(0), request(0), request(1), request(2));
    for (const offset of [0, 1, 2]) await decide(offset, decision('sparse'));
    const { out } = await capture(['--from-beginning', '--max', '2', '--json']);
    expect(JSON.parse(out)).toEqual({
      file,
      requests: 2,
      decided: 2,
      undecided: 0,
      leaves: { sparse: 2 },
      unreadable: 0,
      durationMs: expect.any(Number),
    });
    expect(lines()).toHaveLength(2);
  });

  it('takes the same share of the requests each time', async () => {
    await send(...Array.from({ length: 400 }, (_, offset) => request(offset, { signals: { offset } })));
    for (let offset = 0; offset < 400; offset += 1) await decide(offset, decision('sparse'));
    const args = ['--from-beginning', '--duration', '300ms', '--sample', '0.25'];
    await capture(args);
    const first = lines().map(({ signals }) => signals['offset']);
    rmSync(file);
    await capture(args);
    expect(lines().map(({ signals }) => signals['offset'])).toEqual(first);
    expect(first.length).toBeGreaterThan(60);
    expect(first.length).toBeLessThan(140);
  });

  it('records what comes from now on, until it is interrupted', async () => {
    await send(request(0));
    const stop = new AbortController();
    const open = vi.spyOn(installation, 'open');
    const running = capture(['--json'], stop.signal);
    await vi.waitFor(() => expect(open).toHaveBeenCalled());
    for (let offset = 1; offset <= 20; offset += 1) {
      await send(request(offset));
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    stop.abort();
    const { out, exitCode } = await running;
    expect(exitCode).toBe(0);
    const { requests, undecided } = JSON.parse(out);
    expect(requests).toBeGreaterThan(0);
    expect(requests).toBeLessThan(21);
    expect(undecided).toBe(requests);
    expect(lines()[0]).not.toHaveProperty('leaf');
  });

  it('says why there may be nothing, and leaves the name to the next try', async () => {
    const { out, err, exitCode } = await capture(['--duration', '100ms']);
    expect(exitCode).toBe(1);
    expect(err).toContain('no request was recorded, and no file is kept');
    expect(err).toContain('fused');
    expect(out).toContain('0 requests');
    expect(existsSync(file)).toBe(false);
    await send(request(0));
    await decide(0, decision('sparse'));
    expect(await capture(['--from-beginning', '--max', '1'])).toMatchObject({ exitCode: 0 });
  });

  it('keeps the whole lines where the disk is full', async () => {
    const stop = new AbortController();
    const running = capture(['--from-beginning'], stop.signal);
    await send(request(0));
    await decide(0, decision('sparse'));
    await vi.waitFor(() => expect(lines()).toHaveLength(1), { timeout: 10_000 });
    fillDisk();
    await send(request(1), request(2));
    for (const offset of [1, 2]) await decide(offset, decision('sparse'));
    expect(await running).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(/the file cannot be written: its disk is full .*Make room/),
    });
    expect(lines()).toHaveLength(1);
  });

  it('leaves nothing where the disk was full from the beginning', async () => {
    fillDisk();
    await send(request(0));
    await decide(0, decision('sparse'));
    expect(await capture(['--from-beginning', '--max', '1'])).toMatchObject({ exitCode: 2 });
    expect(existsSync(file)).toBe(false);
  });

  it('counts what it cannot read', async () => {
    const bus = installation.connectBus();
    await bus.produce({ topic: FEATURES, partition: 0, key: null, value: Buffer.from('not avro') });
    await bus.close();
    await send(request(0));
    await decide(0, decision('sparse'));
    const { out } = await capture(['--from-beginning', '--max', '1']);
    expect(out).toContain('1 records could not be read');
  });

  it.each([
    {
      name: 'a file that is there',
      args: [] as string[],
      error: 'never overwritten',
      before: () => writeFileSync(file, ''),
    },
    { name: 'a share above 1', args: ['--sample', '2'], error: 'Allowed: a number above 0, at most 1' },
    { name: 'no share', args: ['--sample', '0'], error: 'Allowed: a number above 0, at most 1' },
    { name: 'no duration', args: ['--duration', 'soon'], error: 'Allowed: a number with ms' },
  ])('refuses $name', async ({ args, error, before }) => {
    before?.();
    const { err, exitCode } = await capture(args);
    expect(err).toContain(error);
    expect(exitCode).toBe(2);
  });
});

describe('CaptureJoin', () => {
  const everything = () => true;

  it('writes a request without its decision when that does not come', () => {
    const written: CorpusLine[] = [];
    const joining = new CaptureJoin({ max: 10, isSampled: everything, onLine: (line) => written.push(line) });
    joining.takeRequest(request(0), 0);
    joining.expire(DECISION_WAIT_MS);
    expect(written).toEqual([]);
    joining.expire(DECISION_WAIT_MS + 1);
    expect(written).toHaveLength(1);
    joining.takeResult(scored('id-of-0', 0, { policy: decision('late') }), DECISION_WAIT_MS + 2);
    expect(written).toHaveLength(1);
    expect(joining).toMatchObject({ accepted: 1, decided: 0, undecided: 1, waiting: 0 });
  });

  it('writes a request that ended before it was routed', () => {
    const written: CorpusLine[] = [];
    const joining = new CaptureJoin({ max: 10, isSampled: everything, onLine: (line) => written.push(line) });
    joining.takeRequest(request(0), 0);
    joining.takeResult(scored('id-of-0', 0, { policy: null }), 1);
    expect(written).toEqual([{ signals: request(0).signals, context: { surface: 'feed' } }]);
  });

  it('writes every request once, with the first decision, in whichever order things come', () => {
    const step = fc.record({ offset: fc.nat(5), isResult: fc.boolean(), leaf: fc.constantFrom('a', 'b') });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const written: CorpusLine[] = [];
        const joining = new CaptureJoin({
          max: 100,
          isSampled: everything,
          onLine: (line) => written.push(line),
        });
        const first = new Map<number, string>();
        const requested = new Set<number>();
        for (const [nowMs, { offset, isResult, leaf }] of steps.entries()) {
          if (isResult) {
            joining.takeResult(scored(`id-of-${offset}`, offset, { policy: decision(leaf) }), nowMs);
            if (!first.has(offset)) first.set(offset, leaf);
          } else {
            joining.takeRequest(request(offset, { signals: { offset } }), nowMs);
            requested.add(offset);
          }
        }
        joining.flush();
        const leaves = new Map(written.map(({ signals, leaf }) => [signals['offset'], leaf]));
        expect(written).toHaveLength(requested.size);
        expect(leaves).toEqual(new Map([...requested].map((offset) => [offset, first.get(offset)])));
      }),
    );
  });
});

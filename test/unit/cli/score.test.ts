import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { scoreLines } from '../../../src/cli/score-lines.ts';
import { shownResult } from '../../../src/cli/shown-result.ts';
import type { Connection, Transport } from '../../../src/client/connection.ts';
import { fp32, int64 } from '../../../src/client/tensors.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import { embeddedTransport } from '../../../src/wiring/embedded-transport.ts';
import { memoryInstallation, scored } from '../client/memory-installation.ts';
import { INSTALLATION, millrace, QUICK_PIPELINE } from './cli.fixture.ts';

const EXAMPLE = 'examples/requests/ranker.json';

/** One pipeline for all tests here: a client keeps it alive. */
let transport: Transport;
let keeper: Connection;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-score-'));
  const { settings } = loadSettings(QUICK_PIPELINE);
  transport = embeddedTransport(settings, { telemetry: silentTelemetry(), random: seededRandom(1) });
  keeper = await transport.open();
});

afterAll(async () => {
  await keeper.close();
  rmSync(folder, { recursive: true, force: true });
});

function score(args: readonly string[], color = false) {
  return millrace(['score', ...args], { environment: QUICK_PIPELINE, transport: () => transport, color });
}

function requestFile(content: object): string {
  const file = join(folder, `${Math.random()}.json`);
  writeFileSync(file, JSON.stringify(content));
  return file;
}

describe('millrace score', () => {
  it('prints the result as JSON', async () => {
    const { out, err, exitCode } = await score([EXAMPLE, '--json']);
    expect(err).toBe('');
    expect(exitCode).toBe(0);
    const result = JSON.parse(out);
    expect(result).toMatchObject({
      transport: 'embedded',
      outcome: 'SCORED',
      model: 'ranker',
      candidatesScored: 8,
      policy: { name: 'one-pool' },
      target: { pool: 'cpu' },
      trace: null,
    });
    expect(result.candidates).toHaveLength(8);
    expect(result.candidates[0]).toMatchObject({ rank: 1, id: expect.stringMatching(/^\d+$/) });
    expect(result.candidates[0].syntheticTitle).toEqual(expect.any(String));
    expect(result.timings.totalMs).toBeGreaterThan(0);
  });

  it.each([
    ['dcn@1', 'dcn@1 baseline'],
    ['dcn', 'dcn@2 baseline'],
    ['dcn@3', 'dcn@3 enhanced'],
    ['two-tower', 'two-tower@1 baseline'],
  ])('scores the same request with %s, and says that its titles are synthetic', async (model, served) => {
    const { hints: _, ...request } = JSON.parse(readFileSync(EXAMPLE, 'utf8'));
    const { out, exitCode } = await score([requestFile({ ...request, model })]);
    expect(exitCode).toBe(0);
    expect(out).toContain(`${served}  8 candidates scored`);
    expect(out).toMatch(/rank +id +score +title \(synthetic catalogue\)/);
  });

  it('prints outcome, best candidates, leaf, target and times for a person', async () => {
    const { out } = await score([EXAMPLE, '--top', '3']);
    const lines = out.split('\n');
    expect(lines[0]).toMatch(
      /^SCORED {2}\S+ {2}ranker@1 baseline {2}8 candidates scored, 8 asked for {2}\(embedded\)$/,
    );
    expect(lines[1]).toMatch(/rank +id +score +title \(synthetic catalogue\)/);
    expect(lines.slice(2, 5).every((line) => /^ {2}\d +\d+ +-?\d+\.\d{5} {2}\S/.test(line))).toBe(true);
    expect(out).toContain('and 5 more (--top)');
    expect(out).toContain('leaf    everything  (policy one-pool@1, epoch 0)');
    expect(out).toMatch(/target {2}cpu, kernel dense, memory host; pool cpu/);
    expect(out).toMatch(/time {4}\d+(\.\d+)? ms of 10000 ms: in topics/);
  });

  it('notes which inputs the request left out', async () => {
    expect((await score([EXAMPLE])).out).not.toContain('note:');
    const request = JSON.parse(readFileSync(EXAMPLE, 'utf8'));
    delete request.requestTensors.history;
    const file = requestFile(request);
    const { out, exitCode } = await score([file]);
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^SCORED .*\n {2}note: the request has no history, so it was scored without\n/);
    expect(JSON.parse((await score([file, '--json'])).out).absentInputs).toEqual(['history']);
    expect(JSON.parse((await score([EXAMPLE, '--json'])).out).absentInputs).toEqual([]);
  });

  it('shows how the policy decided, where asked', async () => {
    const { out } = await score([EXAMPLE, '--explain']);
    expect(out).toMatch(/statusAgeMs \d+(\.\d\d)? ms\n/);
    expect(out).toMatch(/expectedWaitMs \d+(\.\d\d)? ms\n/);
    expect(out).toMatch(/trace\n {2}.*everything/);
    expect(out).toContain('leaf: everything');
    const { trace } = JSON.parse((await score([EXAMPLE, '--explain', '--json'])).out);
    expect(trace).toMatchObject({ path: { leaf: 'everything' } });
  });

  it('colours on a terminal only', async () => {
    const coloured = (await score([EXAMPLE], true)).out;
    expect(coloured).toContain('\u001b[32mSCORED');
    expect(stripVTControlCharacters(coloured).split('\n')).toHaveLength(
      (await score([EXAMPLE])).out.split('\n').length,
    );
  });

  it('has exit code 2 for a request that is refused for what it is, and says why', async () => {
    const file = requestFile({ model: 'rankr', candidateTensors: { item: [[1]] } });
    const { out, exitCode } = await score([file]);
    expect(exitCode).toBe(2);
    expect(out).toMatch(/^REJECTED/);
    expect(out).toContain('UNKNOWN_MODEL');
    expect(out).toContain('Did you mean "ranker"?');
    expect(out).toContain('name the repository that has it in MILLRACE_MODELS');
  });

  it('sends the deadline of --deadline in place of that of the file', async () => {
    const { out } = await score([EXAMPLE, '--deadline', '7s', '--json']);
    expect(JSON.parse(out).timings.budgetMs).toBe(7_000);
  });

  it('gives up when no result comes in time', async () => {
    const silent: Transport = {
      async open() {
        const connection = await transport.open();
        return { ...connection, bus: { ...bound(connection.bus), produce: () => Promise.resolve() } };
      },
    };
    const { err, exitCode } = await millrace(['score', EXAMPLE, '--timeout', '50ms'], {
      environment: QUICK_PIPELINE,
      transport: () => silent,
    });
    expect(exitCode).toBe(1);
    expect(err).toMatch(/no result came in time.*50 ms.*Is the pipeline running/);
  });

  it('refuses a file that is no request before anything is started', async () => {
    const file = requestFile({ model: 'ranker', hint: {} });
    const { err, exitCode } = await millrace(['score', file], {
      transport: () => {
        throw new Error('started');
      },
    });
    expect(exitCode).toBe(2);
    expect(err).toMatch(/hint: a request has no such field.*Did you mean "hints"/);
  });

  it('ends a wait that is interrupted', async () => {
    const stop = AbortSignal.abort();
    const { err, exitCode } = await millrace(['score', EXAMPLE], {
      environment: QUICK_PIPELINE,
      transport: () => transport,
      interruption: () => stop,
    });
    expect(exitCode).toBe(1);
    expect(err).toContain('aborted');
  });
});

describe('the exit code of millrace score', () => {
  const reason = (retryable: boolean) => ({ code: 'X', message: 'why', retryable, retryAfterMs: null });

  it.each([
    ['SCORED', null, 0],
    ['DEGRADED', reason(false), 0],
    ['EXPIRED', reason(true), 1],
    ['REJECTED', reason(true), 1],
    ['REJECTED', reason(false), 2],
    ['DEAD_LETTERED', reason(false), 1],
  ] as const)('for %s with %j is %i', async (outcome, why, expected) => {
    const installation = await memoryInstallation();
    const answering: Transport = {
      async open() {
        const connection = await installation.open();
        const bus = bound(connection.bus);
        const produce: typeof bus.produce = async (record) => {
          await bus.produce(record);
          const request = (await installation.requests())[0];
          const result = scored(request?.requestId ?? '', 0, { outcome, reason: why });
          await installation.publish(result, request?.resultPartition ?? -1);
        };
        return { ...connection, bus: { ...bus, produce } };
      },
    };
    const ran = await millrace(['score', EXAMPLE], { environment: INSTALLATION, transport: () => answering });
    expect(ran.err).toBe('');
    expect(ran.out).toMatch(new RegExp(`^${outcome} .*\\(kafka\\)`));
    expect(ran.exitCode).toBe(expected);
    await installation.close();
  });
});

/** The methods of a class instance, as an object that can be spread. */
function bound(bus: Connection['bus']): Connection['bus'] {
  return {
    admin: bus.admin,
    produce: (record) => bus.produce(record),
    partitionCount: (topic) => bus.partitionCount(topic),
    subscribe: (options, subscriber) => bus.subscribe(options, subscriber),
    read: (options, onRecords) => bus.read(options, onRecords),
    close: () => bus.close(),
  };
}

describe('a result that is shown', () => {
  const result = scored('r', 1, {
    model: 'ranker',
    scores: fp32('s', [3], [0.1, 0.9, 0.5]).contents,
    outputs: [fp32('click', [3], [1, 2, 3])],
    candidateIds: int64('ids', [11, 12, 13]),
    candidatesScored: 3,
    baselineCandidates: 3,
  });

  it('has its candidates best first, with ids, heads and titles', () => {
    const { candidates } = shownResult(result, new Map([['12', 'Twelve']]));
    expect(candidates.map(({ id }) => id)).toEqual(['12', '13', '11']);
    expect(candidates[0]).toMatchObject({ rank: 1, index: 1, heads: { click: 2 }, syntheticTitle: 'Twelve' });
    expect(candidates[1]).not.toHaveProperty('syntheticTitle');
  });

  it('goes by places where there are no ids, and says nothing of a catalogue', () => {
    const shown = shownResult({ ...result, candidateIds: null });
    const text = scoreLines(shown, { top: 9, color: false, transport: 'kafka', absentInputs: [] }).join('\n');
    expect(text).toContain('#1');
    expect(text).not.toContain('synthetic');
    expect(text).toContain('(kafka)');
  });

  it.each([
    ['users,items', 0, '  features of users,items'],
    ['items', 2, '  features of items; default rows: 2'],
    ['', 0, undefined],
  ])(
    'names the views that rows were read from: %j with %i default rows',
    (featureViews, defaultRows, line) => {
      const shown = shownResult({ ...result, featureViews, defaultRows });
      const lines = scoreLines(shown, { top: 1, color: false, transport: 'kafka', absentInputs: [] });
      expect(lines.find((one) => one.includes('features of'))).toBe(line);
    },
  );

  it('tells that it is late, simulated, or not where the leaf wanted it', () => {
    const target = { accelerator: 'gpu', pool: 'p', kernel: 'k', memory: 'm', worker: 'w', simulated: true };
    const shown = shownResult({ ...result, late: true, fallback: 'no live worker', target });
    const text = scoreLines(shown, { top: 1, color: false, transport: 'kafka', absentInputs: [] }).join('\n');
    expect(text).toContain('SCORED, late');
    expect(text).toContain('service times simulated');
    expect(text).toContain('not the first choice: no live worker');
  });
});

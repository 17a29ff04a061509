import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeScoredResult, makeTimings } from '../../../src/contracts/records.ts';
import { type MemoryInstallation, memoryInstallation } from '../client/memory-installation.ts';
import { INSTALLATION, millrace, type Ran } from './cli.fixture.ts';

let installation: MemoryInstallation;

beforeEach(async () => {
  installation = await memoryInstallation();
});

afterEach(() => installation.close());

/** Against topics that no pipeline reads. */
function replay(args: readonly string[], stop = new AbortController()): Promise<Ran> {
  return millrace(['replay', '--json', ...args], {
    environment: INSTALLATION,
    transport: () => ({ open: () => installation.open() }),
    interruption: () => stop.signal,
  });
}

async function allSent(many: number): Promise<void> {
  await expect.poll(async () => (await installation.requests()).length, { timeout: 10_000 }).toBe(many);
}

describe('millrace replay without a pipeline', () => {
  it('says that no result came, and asks whether the pipeline runs; the books do not balance', async () => {
    const { out, err, exitCode } = await replay(['--requests', '4', '--rate', '1000', '--drain', '200ms']);
    expect(JSON.parse(out)).toMatchObject({ ingress: 4, sent: 4, inFlight: 4, balanced: false });
    expect(err).toMatch(
      /^millrace: no result came within 200 ms of the last request, for none of 4 requests\./,
    );
    expect(err).toContain('Is the pipeline running? A longer --drain waits on');
    expect(exitCode).toBe(1);
  });

  it('says what is missing where some results came', async () => {
    const running = replay(['--requests', '3', '--rate', '1000', '--drain', '1s']);
    await allSent(3);
    const record = (await installation.recordsOf('millrace.ingress.v1'))[0];
    await installation.publish(
      makeScoredResult({
        requestId: 'r',
        identity: {
          topic: 'millrace.ingress.v1',
          partition: record?.partition ?? -1,
          offset: record?.offset ?? -1,
        },
        outcome: 'SCORED',
        timings: makeTimings({ totalMs: 1 }),
      }),
    );
    const { out, err, exitCode } = await running;
    expect(JSON.parse(out)).toMatchObject({ inFlight: 2, outcomes: { scored: 1 }, balanced: false });
    expect(err).toContain('millrace: 2 of 3 requests got no result within 1000 ms of the last request.');
    expect(exitCode).toBe(1);
  });

  it.each([
    ['waits for the last results', ['--requests', '3', '--rate', '1000'], 3],
    ['sends', ['--requests', '1000000', '--rate', '20'], undefined],
  ])('ends within a second of an interruption while it %s, with the ledger so far', async (_, args, many) => {
    const stop = new AbortController();
    const running = replay(args, stop);
    if (many === undefined)
      await expect
        .poll(async () => (await installation.requests()).length, { timeout: 10_000 })
        .toBeGreaterThan(1);
    else await allSent(many);
    const startedMs = performance.now();
    stop.abort();
    const { out, err, exitCode } = await running;
    expect(performance.now() - startedMs).toBeLessThan(1_000);
    const ledger = JSON.parse(out);
    expect(ledger).toMatchObject({ inFlight: ledger.sent, balanced: false });
    expect(ledger.sent).toBeGreaterThan(1);
    expect(err).toContain('no result came before the interruption');
    expect(exitCode).toBe(1);
  });

  it('says every so often how far it is, where nobody watches a terminal', async () => {
    const { err } = await replay(['--requests', '60', '--rate', '20', '--drain', '100ms']);
    expect(err).toMatch(/^millrace: sent \d+ of 60, results 0$/m);
  });
});

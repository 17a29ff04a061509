import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/adapters/system/clock.ts';
import { fp32, int64 } from '../../../src/client/tensors.ts';
import type { ScoredResult } from '../../../src/contracts/records.ts';
import { type MemoryInstallation, memoryInstallation, scored } from '../client/memory-installation.ts';
import { INSTALLATION, millrace } from './cli.fixture.ts';

let installation: MemoryInstallation;

beforeEach(async () => {
  installation = await memoryInstallation();
});

afterEach(() => installation.close());

function results(args: readonly string[], interruption = new AbortController().signal) {
  return millrace(['results', ...args], {
    environment: INSTALLATION,
    transport: () => ({ open: () => installation.open() }),
    interruption: () => interruption,
  });
}

async function publish(...ids: readonly string[]): Promise<void> {
  for (const [index, id] of ids.entries()) await installation.publish(withScores(id, index), 0);
}

function withScores(id: string, offset: number): ScoredResult {
  return scored(id, offset, {
    model: 'ranker',
    modelVersion: '1',
    scores: fp32('s', [2], [0.25, 0.5]).contents,
    candidateIds: int64('ids', [7, 8]),
    candidatesScored: 2,
    baselineCandidates: 2,
  });
}

function idsOf(out: string): string[] {
  return out
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(/ {2,}/)[1] ?? '');
}

describe('millrace results', () => {
  it('prints one line each, from the beginning, up to --max', async () => {
    await publish('a', 'b', 'c');
    const { out, err, exitCode } = await results(['--from-beginning', '--max', '2']);
    expect(err).toBe('');
    expect(exitCode).toBe(0);
    expect(idsOf(out)).toEqual(['a', 'b']);
    expect(out).toMatch(/^SCORED +a {2}ranker@1 baseline {2}2 of 2 {2}best 8 0\.5000 {2}3\.00 ms {2}0\/0\n/);
  });

  it('gives up after --timeout where the installation does not answer, and says what to look at', async () => {
    const { err, exitCode } = await millrace(['results', '--timeout', '50ms'], {
      environment: INSTALLATION,
      transport: () => ({ open: () => new Promise(() => undefined) }),
    });
    expect(err).toContain('no connection came about within --timeout (got "50 ms")');
    expect(err).toContain('MILLRACE_KAFKA_BROKERS');
    expect(exitCode).toBe(1);
  });

  it('prints JSON lines with every score', async () => {
    await publish('a');
    const { out } = await results(['--from-beginning', '--max', '1', '--json']);
    expect(JSON.parse(out)).toMatchObject({
      partition: 0,
      offset: 0,
      requestId: 'a',
      outcome: 'SCORED',
      candidates: [
        { id: '8', score: 0.5 },
        { id: '7', score: 0.25 },
      ],
    });
  });

  it('goes on where its group stopped', async () => {
    await publish('a', 'b', 'c');
    const group = ['--group', 'g', '--from-beginning', '--max'];
    expect(idsOf((await results([...group, '2'])).out)).toEqual(['a', 'b']);
    expect(idsOf((await results([...group, '1'])).out)).toEqual(['c']);
  });

  it('prints the first result per request only', async () => {
    await installation.publish(withScores('a', 1), 0);
    await installation.publish(withScores('a', 1), 0);
    await installation.publish(withScores('b', 2), 0);
    expect(idsOf((await results(['--from-beginning', '--max', '2'])).out)).toEqual(['a', 'b']);
  });

  it('ends when none came for so long', async () => {
    await publish('a');
    const { out, exitCode } = await results(['--from-beginning', '--timeout', '300ms']);
    expect(exitCode).toBe(0);
    expect(idsOf(out)).toEqual(['a']);
  });

  it('that saw nothing says what was waited for, and for how long', async () => {
    await publish('old');
    const none = await results(['--max', '5', '--timeout', '300ms']);
    expect(none).toMatchObject({ out: '', exitCode: 1 });
    expect(none.err).toMatch(
      /^millrace: 0 of 5 results in 0\.\d s, of those that came since then\. Is there traffic.*--from-beginning prints those/,
    );
    const some = await results(['--from-beginning', '--max', '5', '--timeout', '300ms']);
    expect(some.exitCode).toBe(0);
    expect(some.err).toMatch(/^millrace: 1 of 5 results in 0\.\d s, counted from the oldest that is kept\n$/);
    const group = ['--group', 'g', '--from-beginning', '--timeout', '300ms'];
    expect((await results(group)).exitCode).toBe(0);
    const again = await results(group);
    expect(again.exitCode).toBe(1);
    expect(again.err).toContain('what the group g has read before does not come again');
  });

  it('says what it waits for while nothing comes', async () => {
    // A hundredth of every time: the line comes after 2 s.
    const clock = systemClock();
    const { out, err, exitCode } = await millrace(['results', '--group', 'g', '--timeout', '50s'], {
      environment: INSTALLATION,
      transport: () => ({ open: () => installation.open() }),
      clock: {
        wallMs: () => clock.wallMs(),
        monotonicMs: () => clock.monotonicMs(),
        after: (delayMs, run) => clock.after(delayMs / 100, run),
        every: (periodMs, run) => clock.every(periodMs / 100, run),
      },
    });
    expect({ out, exitCode }).toEqual({ out: '', exitCode: 1 });
    expect(err).toContain(
      'millrace: waiting for results that come from now on, as a member of the group g …\n',
    );
    expect(err).toMatch(/no result in \d\.\d s/);
  });

  it('starts with what comes, and ends when it is interrupted', async () => {
    await publish('old');
    const stop = new AbortController();
    const open = vi.spyOn(installation, 'open');
    const running = results([], stop.signal);
    await vi.waitFor(() => expect(open).toHaveBeenCalled());
    let sent = 1;
    const sending = setInterval(() => {
      void installation.publish(withScores('new', sent), 0);
      sent += 1;
      if (sent > 20) stop.abort();
    }, 20);
    const { out, exitCode } = await running;
    clearInterval(sending);
    expect(exitCode).toBe(0);
    expect(idsOf(out)).not.toContain('old');
    expect(idsOf(out)).toContain('new');
  });

  it('tells of a result that cannot be read, and goes on', async () => {
    await installation.publishBytes('broken', Buffer.from('not avro'), 0);
    await publish('a');
    const { out, err } = await results(['--from-beginning', '--max', '1']);
    expect(idsOf(out)).toEqual(['a']);
    expect(err).toMatch(/the result at 0\/0 cannot be read: NO_FRAME/);
  });

  it('says why a request was not scored', async () => {
    const reason = {
      code: 'UNKNOWN_MODEL',
      message: 'there is no such model',
      retryable: false,
      retryAfterMs: null,
    };
    await installation.publish(scored('a', 1, { outcome: 'REJECTED', reason }), 0);
    const { out } = await results(['--from-beginning', '--max', '1']);
    expect(out).toMatch(/^REJECTED +a .*UNKNOWN_MODEL: there is no such model/);
  });
});

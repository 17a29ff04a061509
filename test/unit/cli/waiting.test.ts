import { describe, expect, it } from 'vitest';
import type { CliContext } from '../../../src/cli/context.ts';
import { openingConnection } from '../../../src/cli/opening.ts';
import { Progress } from '../../../src/cli/progress.ts';
import { Screen, wantsColor } from '../../../src/cli/screen.ts';
import { waitingFor } from '../../../src/cli/waiting.ts';
import type { Connection, Transport } from '../../../src/client/connection.ts';
import { virtualClock } from '../../../src/simulation/virtual-clock.ts';
import { CapturedOutput } from './cli.fixture.ts';

function rig(isTTY: boolean) {
  const clock = virtualClock();
  const stderr = new CapturedOutput(isTTY);
  const context = { clock, stderr } as unknown as CliContext;
  const work = Promise.withResolvers<string>();
  const waiting = waitingFor(context, 'starting', work.promise);
  return { clock, stderr, work, waiting };
}

describe('what is waited for', () => {
  it('is not told within two seconds', async () => {
    const { clock, stderr, work, waiting } = rig(true);
    await clock.advanceBy(1_900);
    work.resolve('done');
    expect(await waiting).toBe('done');
    expect(stderr.text).toBe('');
    expect(clock.pending).toBe(0);
  });

  it('is told on a terminal with the seconds, and wiped at the end', async () => {
    const { clock, stderr, work, waiting } = rig(true);
    await clock.advanceBy(4_500);
    expect(stderr.text).toContain('starting … 2 s');
    expect(stderr.text).toContain('starting … 4 s');
    work.resolve('done');
    await waiting;
    expect(stderr.text.endsWith('\r\u001b[2K')).toBe(true);
    expect(clock.pending).toBe(0);
  });

  it('is told every 10 s in a log, without control characters', async () => {
    const { clock, stderr, work, waiting } = rig(false);
    await clock.advanceBy(25_000);
    work.reject(new Error('no'));
    await expect(waiting).rejects.toThrow('no');
    expect(stderr.text).toBe('millrace: starting …\nmillrace: starting … 12 s\nmillrace: starting … 22 s\n');
    expect(clock.pending).toBe(0);
  });

  it('is told as it is at that moment', async () => {
    const clock = virtualClock();
    const stderr = new CapturedOutput(false);
    const work = Promise.withResolvers<void>();
    let results = 0;
    const waiting = waitingFor({ clock, stderr }, () => `waiting: ${results} of 9`, work.promise);
    await clock.advanceBy(2_000);
    results = 7;
    await clock.advanceBy(10_000);
    work.resolve();
    await waiting;
    expect(stderr.text).toBe('millrace: waiting: 0 of 9 …\nmillrace: waiting: 7 of 9 … 12 s\n');
  });
});

describe('what is opened', () => {
  it('is told in one line, with what holds it up', async () => {
    const clock = virtualClock();
    const stderr = new CapturedOutput(false);
    const opened = Promise.withResolvers<Connection>();
    const transport: Transport = {
      open(listener) {
        for (let n = 0; n < 3; n += 1) listener?.waitsFor('the schema registry at x did not answer');
        return opened.promise;
      },
    };
    const connection = openingConnection({ clock, stderr }, transport);
    await clock.advanceBy(5_000);
    expect(stderr.text).toBe(
      'millrace: connecting to the installation: the schema registry at x did not answer …\n',
    );
    opened.resolve({} as Connection);
    await connection;
    expect(clock.pending).toBe(0);
  });
});

describe('a progress bar', () => {
  it('fills on a terminal, and is wiped at the end', async () => {
    const clock = virtualClock();
    const stream = new CapturedOutput(true);
    let done = 5;
    const progress = new Progress(stream, clock, { total: 10, done: () => done, line: () => 'unused' });
    await clock.advanceBy(200);
    expect(stream.text).toContain(`${'█'.repeat(15)}${'░'.repeat(15)} 5 of 10`);
    done = 12;
    await clock.advanceBy(200);
    expect(stream.text).toContain(`${'█'.repeat(30)} 12 of 10`);
    progress.end();
    expect(stream.text.endsWith('\r\u001b[2K')).toBe(true);
    expect(clock.pending).toBe(0);
  });

  it('is a line in words on a terminal where nobody knows how many there are', async () => {
    const clock = virtualClock();
    const stream = new CapturedOutput(true);
    const progress = new Progress(stream, clock, { done: () => 5, line: () => 'sent 5' });
    await clock.advanceBy(200);
    progress.end();
    expect(stream.text).toBe('\r\u001b[2Ksent 5\r\u001b[2K');
  });

  it('is a line after 2 s and then every 10 s elsewhere', async () => {
    const clock = virtualClock();
    const stream = new CapturedOutput(false);
    let done = 0;
    const progress = new Progress(stream, clock, { total: 10, done: () => done, line: () => `sent ${done}` });
    await clock.advanceBy(1_900);
    expect(stream.text).toBe('');
    done = 3;
    await clock.advanceBy(10_000);
    expect(stream.text).toBe('millrace: sent 3\n');
    done = 8;
    await clock.advanceBy(200);
    expect(stream.text).toBe('millrace: sent 3\nmillrace: sent 8\n');
    progress.end();
    await clock.advanceBy(60_000);
    expect(stream.text).toBe('millrace: sent 3\nmillrace: sent 8\n');
    expect(clock.pending).toBe(0);
  });
});

describe('a screen', () => {
  it('redraws its lines in place, and wipes those that are no longer', () => {
    const stream = new CapturedOutput(true);
    const screen = new Screen(stream);
    screen.draw(['a', 'b']);
    stream.text = '';
    screen.draw(['c']);
    expect(stream.text).toBe('\u001b[2A\u001b[2Kc\n\u001b[J');
  });

  it('draws nothing on what is no terminal', () => {
    const stream = new CapturedOutput(false);
    new Screen(stream).draw(['a']);
    expect(stream.text).toBe('');
  });

  it.each([
    [true, {}, true],
    [true, { NO_COLOR: '' }, true],
    [true, { NO_COLOR: '1' }, false],
    [false, {}, false],
  ])('is coloured: terminal %s, environment %j → %s', (isTTY, environment, expected) => {
    expect(wantsColor(new CapturedOutput(isTTY), environment)).toBe(expected);
  });
});

import { existsSync, rmSync, symlinkSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ServiceLog } from '../../../src/cli/service-log.ts';
import { startServiceProcess } from '../../../src/cli/service-processes.ts';
import { temporaryFolder } from './temporary-folder.ts';

const FULL =
  /^the log of router-1 cannot be written: its disk is full .*router-1 goes on; its lines are lost/;

function start(how: { isFull?: boolean; file?: string } = {}) {
  const place = temporaryFolder();
  const path = place.path(how.file ?? 'router-1.log');
  if (how.isFull === true) symlinkSync('/dev/full', path);
  const told: string[] = [];
  const clock = { nowMs: 5 };
  const tell = (line: string): void => void told.push(line);
  const open = (): ServiceLog => new ServiceLog({ name: 'router-1', path, tell, nowMs: () => clock.nowMs });
  return { place, path, told, tell, clock, open };
}

describe('the log of a service', () => {
  it('keeps its lines behind those of an earlier run, in a folder that is made', () => {
    const { open, place, told } = start({ file: 'logs/router-1.log' });
    for (const line of ['one\n', Buffer.from('two\n')]) {
      const log = open();
      log.write(line);
      log.close();
    }
    expect(place.read('logs/router-1.log')).toBe('one\ntwo\n');
    expect(told).toEqual([]);
  });

  it('says once that its disk is full, and once that lines are kept again', () => {
    const { open, place, path, told, clock } = start({ isFull: true });
    const log = open();
    for (let line = 0; line < 5; line += 1) log.write(`lost ${line}\n`);
    clock.nowMs += 20_000;
    log.write('lost 5\n');
    expect(told).toEqual([expect.stringMatching(FULL)]);
    rmSync(path);
    log.write('lost 6\n');
    expect(existsSync(path)).toBe(false);
    clock.nowMs += 10_000;
    log.write('kept 1\n');
    log.write('kept 2\n');
    expect(place.read('router-1.log')).toBe('\nkept 1\nkept 2\n');
    expect(told.slice(1)).toEqual([`the log of router-1 is written again, without 7 of its lines: ${path}`]);
  });

  it('makes its folder anew where somebody took it away with what was broken in it', () => {
    const { open, place, path, clock } = start({ isFull: true });
    const log = open();
    log.write('lost\n');
    rmSync(place.path('.'), { recursive: true });
    clock.nowMs += 10_000;
    log.write('kept\n');
    expect(place.read('router-1.log')).toBe('\nkept\n');
    expect(existsSync(path)).toBe(true);
  });

  it('takes nothing any more once it is closed, and says nothing of it', () => {
    const { open, place, told, clock } = start();
    const log = open();
    log.close();
    clock.nowMs += 60_000;
    log.write('late\n');
    expect(place.read('router-1.log')).toBe('');
    expect(told).toEqual([]);
  });

  it('is refused where there is no place for it', () => {
    const { open, place } = start({ file: 'taken/router-1.log' });
    place.write('taken', 'a file');
    expect(open).toThrow(/^the log of router-1 cannot be written: .*taken.router-1\.log.*TMPDIR names/);
  });
});

/** Ends by itself: no broker is named. */
const ending = { service: 'feature-extractor', environment: { MILLRACE_KAFKA_BROKERS: '' } } as const;

describe('a service that is started', () => {
  it('runs where its log cannot be written, and its last lines are told all the same', async () => {
    const { place, told, tell } = start({ isFull: true });
    const starting = startServiceProcess({ ...ending, name: 'router-1', logFolder: place.path('.'), tell });
    await expect(starting).rejects.toThrow(
      /^router-1 ended with 2\. Its last lines:\nfeature-extractor: MILLRACE_KAFKA_BROKERS is not set/,
    );
    expect(told).toEqual([expect.stringMatching(FULL)]);
  });

  it('is not where there is no place for its log', async () => {
    const { place, tell } = start();
    const logFolder = place.write('taken', 'a file');
    await expect(startServiceProcess({ ...ending, name: 'router-1', logFolder, tell })).rejects.toMatchObject(
      {
        code: 'INVALID_CONFIG',
        message: expect.stringMatching(/^the log of router-1 cannot be written/),
      },
    );
  });
});

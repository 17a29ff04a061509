import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { INSTALLATION, millrace, QUICK_PIPELINE } from './cli.fixture.ts';
import { temporaryFolder } from './temporary-folder.ts';

describe('millrace start', () => {
  it('drives traffic through the embedded pipeline, and prints books that balance', async () => {
    const args = ['start', '--duration', '1s', '--rate', '40', '--seed', '3', '--deadline', '60s', '--json'];
    const { out, err, exitCode } = await millrace(args, { environment: QUICK_PIPELINE });
    expect(err).toMatch(/^millrace: commands to this pipeline need no signature/m);
    const ledger = JSON.parse(out);
    expect(ledger).toMatchObject({ balanced: true, inFlight: 0, refused: 0, seed: 3, ratePerSecond: 40 });
    expect(ledger.ingress).toBe(ledger.sent);
    expect(ledger.sent).toBeGreaterThan(5);
    expect(ledger.outcomes.scored).toBe(ledger.sent);
    expect(exitCode).toBe(0);
  });

  it('says what to do where the models have no family that its traffic is of', async () => {
    const folder = temporaryFolder();
    cpSync('models/repository/two-tower', folder.path('two-tower'), { recursive: true });
    const environment = { ...QUICK_PIPELINE, MILLRACE_MODELS: folder.path('.') };
    const { err, exitCode } = await millrace(['start', '--duration', '1s'], { environment });
    expect(exitCode).toBe(2);
    expect(err).toMatch(
      /of the family ranker: there is no such model .* restarted\. Copy the folder of ranker/,
    );
    expect(err).not.toContain('..');
  });

  it('redraws a table on a terminal, and prints it once elsewhere', async () => {
    const args = ['start', '--duration', '700ms', '--rate', '20', '--deadline', '60s'];
    const live = await millrace(args, { environment: QUICK_PIPELINE, color: true });
    expect(live.out).toContain('\u001b[2K');
    expect(stripVTControlCharacters(live.out).match(/policy one-pool@1/g)?.length).toBeGreaterThan(1);
    const plain = await millrace(args, { environment: QUICK_PIPELINE });
    expect(plain.out).not.toContain('\u001b');
    expect(plain.out.match(/policy one-pool@1/g)).toHaveLength(1);
    expect(plain.out).toMatch(/\nledger \{"ingress":/);
  });

  it('ends when it is interrupted, drained', async () => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 1_500);
    const { out, exitCode } = await millrace(['start', '--rate', '20', '--deadline', '60s', '--json'], {
      environment: QUICK_PIPELINE,
      interruption: () => stop.signal,
    });
    expect(JSON.parse(out)).toMatchObject({ balanced: true, inFlight: 0 });
    expect(exitCode).toBe(0);
  });

  it.each([
    [['--trace', '/no/such.csv'], 'there is none of this name'],
    [['--policy', '/no/such.yaml'], 'there is none of this name'],
    [['--topology', 'both'], 'split, fused'],
  ])('refuses %j, and ends', async (args, message) => {
    const { err, exitCode } = await millrace(['start', ...args], { environment: QUICK_PIPELINE });
    expect(exitCode).toBe(2);
    expect(err).toContain(message);
  });
});

describe('millrace replay', () => {
  const environment = { ...QUICK_PIPELINE, ...INSTALLATION };

  it('replays the packaged trace, and prints books that balance', async () => {
    const args = ['replay', '--requests', '30', '--rate', '200', '--deadline', '60s', '--json'];
    const { out, exitCode } = await millrace(args, { environment });
    expect(JSON.parse(out)).toMatchObject({
      ingress: 30,
      sent: 30,
      balanced: true,
      outcomes: { scored: 30 },
    });
    expect(exitCode).toBe(0);
  });

  it('replays a file, by default indented', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-trace-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'trace.csv');
    const rows = Array.from({ length: 5 }, (_, n) => `2023-11-16 18:17:0${n}.0000000,${512 * (n + 1)},10`);
    writeFileSync(file, `TIMESTAMP,ContextTokens,GeneratedTokens\n${rows.join('\n')}\n`);
    const args = ['replay', file, '--requests', '10', '--rate', '200', '--deadline', '60s'];
    const { out, exitCode } = await millrace(args, { environment });
    expect(out.split('\n').length).toBeGreaterThan(10);
    expect(JSON.parse(out)).toMatchObject({ ingress: 10, balanced: true });
    expect(exitCode).toBe(0);
  });
});

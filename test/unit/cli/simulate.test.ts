import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import type { SimulationResult } from '../../../src/simulation/report/simulation-result.ts';
import { millrace } from './cli.fixture.ts';
import { temporaryFolder } from './temporary-folder.ts';

const QUICK = ['simulate', '--rate', '50', '--duration', '400ms'];
describe('millrace simulate', () => {
  it('prints the same JSON in two processes, byte for byte', () => {
    const [one, other] = [1, 2].map(() =>
      spawnSync(process.execPath, ['bin/millrace.js', ...QUICK, '--json'], { encoding: 'utf8' }),
    );
    expect(one?.status).toBe(0);
    expect(one?.stdout.length).toBeGreaterThan(1_000);
    expect(other?.stdout).toBe(one?.stdout);
    expect(one?.stderr).toMatch(/^\d+ requests in .* times as fast as real time\n$/);
  });

  it('says that it is simulated, for people too', async () => {
    const { out, exitCode } = await millrace(QUICK);
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^SIMULATED: /);
    expect(out).toMatch(/starter@1 on embedded, Poisson arrivals, 50\/s on average, 0\.4 s, seed 1/);
    expect(out).toMatch(/p99\.9 too few/);
  });

  it('runs each policy with each seed, and compares them on the same traffic', async () => {
    const policies = ['--policy', 'examples/policies/starter.yaml', 'examples/policies/video.yaml'];
    const { out, exitCode } = await millrace([...QUICK, ...policies, '--seeds', '2', '--compare', '--json']);
    expect(exitCode).toBe(0);
    const { runs, comparisons } = JSON.parse(out) as SimulationResult;
    expect(runs.map(({ policy, seed }) => [policy.name, seed])).toEqual([
      ['starter', 1],
      ['starter', 2],
      ['video', 1],
      ['video', 2],
    ]);
    expect(runs[2]?.series.arrivals).toEqual(runs[0]?.series.arrivals);
    expect(runs[1]?.series.arrivals).not.toEqual(runs[0]?.series.arrivals);
    expect(comparisons).toHaveLength(1);
    expect(comparisons[0]).toMatchObject({ first: 'starter@1', other: 'video@1' });
  });

  it('writes a page, or says before it runs that it cannot', async () => {
    const folder = temporaryFolder();
    const { exitCode } = await millrace([...QUICK, '--html', folder.path('report.html')]);
    expect(exitCode).toBe(0);
    expect(folder.read('report.html')).toContain('<strong>Simulated.</strong>');
    const { err, out } = await millrace([...QUICK, '--html', folder.path('no/report.html')]);
    expect(out).toBe('');
    expect(err).toMatch(/cannot be written.*folder does not exist/);
  });

  it.each([
    ['no traffic', ['simulate'], /there is no traffic \(allowed: --rate/],
    ['a rate that is no number', ['simulate', '--rate', 'NaN'], /--rate.*above 0/],
    ['one policy to compare', [...QUICK, '--compare'], /--compare needs policies.*two or more/],
    [
      'a burst that never ends',
      [...QUICK, '--burst', '3/2s/1s'],
      /--burst is not valid.*"3\/2s\/1s".*factor\/length\/every/,
    ],
    ['a wave below nothing', [...QUICK, '--wave', '1.5/1h'], /--wave is not valid.*0 … 1/],
    ['sizes upside down', [...QUICK, '--candidates', '9-3'], /--candidates is not valid.*8-256/],
    ['a trace that is not there', ['simulate', '--trace', 'nowhere.csv'], /none of this name.*nowhere\.csv/],
    [
      'bursts on a trace',
      [...QUICK, '--trace', 'x.csv', '--burst', '3/1s/9s'],
      /bursts and waves of its own/,
    ],
  ])('refuses %s', async (_what, args, message) => {
    const { out, err, exitCode } = await millrace(args);
    expect(exitCode).toBe(2);
    expect(out).toBe('');
    expect(err).toMatch(message);
  });

  it('gives a pool the workers that a record of spot availability lets it have', async () => {
    const file = temporaryFolder().write(
      'spot.json',
      '{"metadata": {"gap_seconds": 0.2}, "data": [1, 0, 1]}',
    );
    const { out } = await millrace([
      'simulate',
      '--rate',
      '50',
      '--duration',
      '600ms',
      '--spot',
      `v100=${file}`,
      '--json',
    ]);
    const { series } = (JSON.parse(out) as SimulationResult).runs[0] ?? {};
    const v100 = series?.pools.find(({ pool }) => pool === 'v100');
    expect(v100?.workers.map((workers, step) => [(step + 1) * (series?.stepMs ?? 0), workers])).toEqual(
      [50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600].map((atMs) => [
        atMs,
        atMs >= 200 && atMs < 400 ? 0 : 1,
      ]),
    );
  });

  it('refuses a fleet with its place in the file, and a trace with a bad line before anything runs', async () => {
    const folder = temporaryFolder();
    const fleet = folder.write(
      'fleet.yaml',
      'apiVersion: millrace/v1\nkind: SimulatedFleet\nname: x\naccelerators: {}\n',
    );
    expect((await millrace([...QUICK, '--fleet', fleet])).err).toMatch(
      /the fleet .*fleet\.yaml: accelerators, line 4, column 15: a fleet without accelerators/,
    );
    const trace = folder.write('rates.csv', 'timestamp,value\n0,50\n1,-3\n');
    const { out, err, exitCode } = await millrace(['simulate', '--trace', trace]);
    expect([out, exitCode]).toEqual(['', 2]);
    expect(err).toMatch(/rates\.csv is not valid at line 3, value \(got "-3"; allowed: requests per second/);
  });
});

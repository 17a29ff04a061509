import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { prometheusTelemetry } from '../../../src/adapters/prometheus/telemetry.ts';
import { openRepository } from '../../../src/inference/repository/open-repository.ts';
import { CostMeter } from '../../../src/stages/accelerator-worker/cost-meter.ts';
import { type HttpServer, serve } from '../../conformance/prometheus.fixture.ts';
import { handDrivenModel } from '../stages/accelerator-worker/model.fixture.ts';
import { millrace } from './cli.fixture.ts';
import { profiledModels } from './profiled-models.fixture.ts';

const servers: HttpServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

interface Batches {
  count?: number;
  pool?: string;
  version?: string;
  family?: string;
  kernel?: string;
  /** ms of a request, of one of its candidates, and of one of its rows. */
  cost?: readonly [number, number, number];
  candidates?: (n: number) => number;
  /** How many times as long a batch took. */
  noise?: (n: number) => number;
}

/** What a worker's page says after such batches: written by the meter and the telemetry that workers have. */
async function pageOf(...all: readonly Batches[]): Promise<string> {
  const telemetry = prometheusTelemetry({ service: 'a-test', level: 'silent' });
  for (const batches of all) {
    const { noise = () => 1 } = batches;
    const { count = 300, pool = 'cpu', version = '2', family = 'toy', kernel = 'dense' } = batches;
    const {
      cost: [base, perN, perT] = [0.3, 0.002, 0.001],
      candidates = (n: number) => 1 + ((n * 37) % 200),
    } = batches;
    const meter = new CostMeter(pool, silenced(telemetry));
    const model = { ...handDrivenModel(), family, version };
    for (let n = 0; n < count; n += 1) {
      const shape = {
        requests: 1 + (n % 4),
        candidates: (1 + (n % 4)) * candidates(n),
        rows: n % 9,
        candidateRows: (n % 9) * candidates(n),
      };
      const computeMs = noise(n) * (shape.requests * base + shape.candidates * perN + shape.rows * perT);
      meter.computed(model, kernel, { items: [], computeMs, bytesMoved: 0, shape });
    }
    meter.publish();
  }
  return telemetry.metricsText();
}

/** A worker defines a counter once; here several write to it. */
const counters = new WeakMap<object, ReturnType<ReturnType<typeof prometheusTelemetry>['counter']>>();
function silenced(telemetry: ReturnType<typeof prometheusTelemetry>) {
  return {
    ...telemetry,
    counter(definition: Parameters<typeof telemetry.counter>[0]) {
      const known = counters.get(telemetry) ?? telemetry.counter(definition);
      counters.set(telemetry, known);
      return known;
    },
  };
}

async function serving(page: string): Promise<string> {
  const server = await serve((_request, response) => void response.end(page));
  servers.push(server);
  return `${server.url}/metrics`;
}

describe('profile refit', () => {
  it('fits what the batches of workers took, beside the cost model in use', async () => {
    const { profile } = await profiledModels();
    const { out, err, exitCode } = await profile('refit', await serving(await pageOf({})));
    expect({ err, exitCode }).toEqual({ err: '', exitCode: 0 });
    expect(out.split('\n')[0]).toMatch(/^version +kernel +batches +ms +off by +cost model in use$/);
    expect(out).toMatch(/^toy@2 +dense +300 +0\.3 \+ 0\.002·N \+ 0\.001·T +[\d.e-]+ % +[\d.]+ %$/m);
  });

  it.each([[['--json']], [['--models', 'MODELS', '--json']]])(
    'tells it as JSON, with %j after the page',
    async (flags) => {
      const { write, models, path } = await profiledModels();
      const page = write('page.txt', await pageOf({}, { version: '9', kernel: 'sparse', count: 250 }));
      const environment = flags.includes('MODELS') ? {} : { MILLRACE_MODELS: models };
      const args = ['profile', 'refit', page, ...flags.map((flag) => flag.replace('MODELS', models))];
      const { out, exitCode } = await millrace(args, { environment });
      expect(exitCode).toBe(0);
      const [known, unknown, ...more] = out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(more).toEqual([]);
      expect(known).toMatchObject({ family: 'toy', version: '2', kernel: 'dense', batches: 300 });
      expect(known.coefficients).toEqual([0.3, 0.002, 0.001, 0]);
      expect(known.error).toBeLessThan(1e-4);
      expect(known.errorNow).toBeGreaterThan(0.1);
      expect(unknown).toMatchObject({ version: '9', kernel: 'sparse', batches: 250 });
      expect(unknown).not.toHaveProperty('errorNow');
      expect(existsSync(path('page.txt'))).toBe(true);
    },
  );

  it('adds up the pages of workers, and reads only a pool that is named', async () => {
    const { profile, write } = await profiledModels();
    const slow = await pageOf({ pool: 'spot', cost: [3, 0.02, 0.01] });
    const pages = [
      write('1.txt', await pageOf({ count: 150 })),
      write('2.txt', await pageOf({ count: 150 })),
      write('3.txt', slow),
    ];
    const refit = async (...flags: string[]) =>
      JSON.parse((await profile('refit', ...pages, ...flags, '--json')).out);
    expect(await refit()).toMatchObject({ batches: 600 });
    expect(await refit('--pool', 'cpu')).toMatchObject({
      batches: 300,
      coefficients: [0.3, 0.002, 0.001, 0],
    });
    expect(await refit('--pool', 'spot')).toMatchObject({ batches: 300, coefficients: [3, 0.02, 0.01, 0] });
  });

  it('writes the fit of the dense kernel into cost.json, and the rest of it stays', async () => {
    const { profile, write, cost, models } = await profiledModels();
    const other = cost('1');
    const page = write('page.txt', await pageOf({}, { kernel: 'sparse', cost: [9, 9, 9] }, { version: '9' }));
    const { out, exitCode } = await profile('refit', page, '--write');
    expect(exitCode).toBe(0);
    expect(out).toMatch(/\nwritten: .*toy\/2\/cost\.json\n$/);
    expect(cost('1')).toEqual(other);
    const written = cost('2');
    expect(written).toMatchObject({
      ...{ features: ['1', 'N', 'T'], coefficients: [0.3, 0.002, 0.001] },
      ...{ measured: { batches: 300 }, machine: 'live batches of workers' },
      grid: { B: 1, N: [1, 8], T: [0, 8, 4] },
    });
    expect(written['rmsRelativeError']).toBeLessThan(1e-3);
    expect(written).not.toHaveProperty('medianRelativeError');
    const { refused, families } = await openRepository(models);
    expect(refused).toEqual([]);
    expect(families[0]?.versions.find(({ version }) => version === '2')).toMatchObject({ typicalRows: 4 });
    // With it in use, nothing is off.
    expect(
      JSON.parse((await profile('refit', page, '--json')).out.split('\n')[0] ?? '').errorNow,
    ).toBeLessThan(1e-3);
  });

  it.each<[string, Batches, RegExp]>([
    ['few', { count: 199 }, /^toy@2 +dense +199 +too few: 200 are needed/m],
    ['alike', { candidates: () => 100 }, /^toy@2 +dense +300 +too alike: /m],
    ['noisy', { noise: (n) => (n % 3 === 0 ? 1 : 12) }, /^toy@2 +dense +300 +too noisy: /m],
    ['nearly alike', { candidates: (n) => 100 + (n % 7) }, /too alike/],
  ])('fits nothing to batches that are %s, and writes nothing', async (_, batches, reason) => {
    const { profile, write, cost } = await profiledModels();
    const before = cost('2');
    const page = write('page.txt', await pageOf(batches));
    const { out, exitCode } = await profile('refit', page, '--write');
    expect(exitCode).toBe(1);
    expect(out).toMatch(reason);
    expect(out).not.toMatch(/written/);
    expect(cost('2')).toEqual(before);
  });

  it.each<[string, (page: string) => string, RegExp]>([
    ['a page without batches', () => 'up 1\n', /the pages tell of no batch.*millrace_cost_moments_total/],
    ['a page that is none', () => '<html>', /tell of no batch/],
    ['series without a label', (page) => page.replaceAll('version="2",', ''), /tell of no batch/],
    ['numbers that are none', (page) => page.replaceAll(/ [\d.e+-]+$/gm, ' NaN'), /tell of no batch/],
  ])('refuses %s', async (_, change, reason) => {
    const { profile, write } = await profiledModels();
    const { err, out, exitCode } = await profile('refit', write('page.txt', change(await pageOf({}))));
    expect(err).toMatch(reason);
    expect({ out, exitCode }).toEqual({ out: '', exitCode: 2 });
  });

  const lines = (page: string): string[] =>
    page.split('\n').filter((line) => line.startsWith('millrace_cost_moments_total{'));
  it.each<[string, (page: string) => string, RegExp]>([
    ['was cut short', (page) => lines(page).slice(0, 12).join('\n'), /not whole: a page lacks the moment/],
    [
      'has a sum that no number holds',
      (page) =>
        `${page}\n${lines(page)
          .map((line) => line.replace(/ \S+$/, ' 1.7e308'))
          .join('\n')}`.repeat(2),
      /not whole: .* too large/,
    ],
    [
      'has sums that are of no batches',
      (page) =>
        page.replaceAll(/(moment="\S+ \S+"\} )(\S+)/g, (_, before, sum) => `${before}${0.9 * Number(sum)}`),
      /inconsistent/,
    ],
  ])('fits nothing to a page that %s, beside a whole one or not', async (_, change, reason) => {
    const { profile, write, cost } = await profiledModels();
    const before = cost('2');
    const whole = await pageOf({});
    const changed = write('changed.txt', change(whole));
    for (const pages of [[changed], [write('whole.txt', whole), changed]]) {
      const { out, exitCode } = await profile('refit', ...pages, '--write');
      expect(out).toMatch(reason);
      expect(exitCode).toBe(1);
      expect(cost('2')).toEqual(before);
    }
  });

  it('shows names of a page as what they are', async () => {
    const { profile, write } = await profiledModels();
    const { out } = await profile('refit', write('page.txt', await pageOf({ family: '\u001b[31mtoy\nx' })));
    expect(out).toContain('?[31mtoy?x@2');
  });

  it('takes no version of a page for a path', async () => {
    const { profile, write, cost, models } = await profiledModels();
    const before = [cost('1'), cost('2')];
    const page = write('page.txt', await pageOf({ version: '../1' }, { family: '..', version: 'toy/2' }));
    const { out } = await profile('refit', page, '--write');
    expect(out).toMatch(/–/);
    expect(out).not.toMatch(/written/);
    expect([cost('1'), cost('2')]).toEqual(before);
    expect(existsSync(join(models, 'cost.json'))).toBe(false);
  });

  it.each([
    ['--accelerator', ['gpu-a100']],
    ['--backend', ['simulated']],
    ['--family', ['toy']],
    ['--measure-time', ['1s']],
    ['--out', ['profile.json']],
    ['--policy', ['starter.yaml']],
    ['--policy-name', ['starter']],
    ['--with', ['cpu.json']],
    ['--fleet', ['fleet.yaml']],
    ['--costs', []],
    ['--seed', ['2']],
  ])('refuses %s, which is of profile alone', async (flag, value) => {
    for (const args of [
      ['profile', flag, ...value, 'refit', 'page.txt'],
      ['profile', 'refit', 'page.txt', flag, ...value],
    ]) {
      const { err, exitCode } = await millrace(args);
      expect(err).toMatch(`millrace: option '${flag}`);
      expect(err).toMatch(/ is of profile alone, not of profile refit\n/);
      expect(exitCode).toBe(2);
    }
  });

  it('refuses a pool that computed nothing, a file and a worker that are not there', async () => {
    const { profile, write, path } = await profiledModels();
    const page = write('page.txt', await pageOf({}));
    for (const [args, reason] of [
      [[page, '--pool', 'gpu'], /tell of no batch/],
      [[path('none.txt')], /the metrics page cannot be read.*none\.txt/],
      [['http://127.0.0.1:1/metrics'], /the metrics page cannot be read.*127\.0\.0\.1:1/],
      [[], /missing required argument/],
    ] as const) {
      const { err, exitCode } = await profile('refit', ...args);
      expect(err).toMatch(reason);
      expect(exitCode).toBe(2);
    }
  });

  it('changes nothing where the cost model is gone meanwhile', async () => {
    const { profile, write, models } = await profiledModels();
    const page = write('page.txt', await pageOf({}, { version: '1' }));
    rmSync(join(models, 'toy', '1'), { recursive: true });
    const { out, exitCode } = await profile('refit', page, '--write');
    expect(exitCode).toBe(0);
    expect(out.match(/^written: .*$/gm)).toEqual([expect.stringContaining('toy/2/cost.json')]);
  });
});

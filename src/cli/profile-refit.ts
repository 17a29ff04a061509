import { join } from 'node:path';
import { Command } from 'commander';
import {
  fetchMetricsPage,
  PAGE_BYTES_MAX,
  type PageSample,
  samplesOf,
} from '../adapters/prometheus/metrics-page.ts';
import { loadSettings } from '../config/load-settings.ts';
import { readUserFile, writeUserFiles } from '../config/user-file.ts';
import { cutText } from '../core/cut-text.ts';
import { MillraceError } from '../core/errors.ts';
import type { CostModel, CostTerm } from '../core/signals/cost-model.ts';
import {
  fitMoments,
  MOMENT_FEATURES,
  MOMENT_NAMES,
  momentsError,
  tellsCandidatesApart,
} from '../core/signals/cost-moments.ts';
import { costSchema } from '../inference/repository/cost.ts';
import type { ModelVersion } from '../inference/repository/model-version.ts';
import type { ModelRepository } from '../inference/repository/open-repository.ts';
import { parseAs, readJson } from '../inference/repository/parse-file.ts';
import { openModels } from '../wiring/backends.ts';
import { type CliContext, cliTelemetry } from './context.ts';
import { costPath } from './profile-costs.ts';
import { costFormula } from './profile-report.ts';
import { tableLines } from './table.ts';

interface RefitFlags {
  models?: string;
  pool?: string;
  write: boolean;
  json: boolean;
}

/** What live batches of a version by a kernel say. */
interface Refit {
  readonly family: string;
  readonly version: string;
  readonly kernel: string;
  readonly batches: number;
  /** Why it is no cost model to work with; undefined where it is one. */
  readonly refused: string | undefined;
  readonly coefficients: readonly number[];
  /** Root of the mean square, shares of what a batch took. */
  readonly error: number;
  /** Of the cost model that the version has now, on the same batches; undefined where the repository has no such version. */
  readonly errorNow: number | undefined;
}

const METRIC = 'millrace_cost_moments_total';
/** Of a fit that is off by more, the terms are those of the noise: another hour would give others. */
const ERROR_MAX = 0.5;
const NAME_SHOWN_MAX = 80;
/** Fewer say more about their noise. */
const BATCHES_MIN = 200;
/** The kernel that cost.json is about. */
const KERNEL = 'dense';
const DIGITS = 4;

/** `millrace profile refit <metrics…>`: cost models from what live batches took. */
export function profileRefitCommand(context: CliContext): Command {
  return new Command('refit')
    .description('Fit the cost models to what the batches of running workers took')
    .argument('<metrics...>', 'metrics pages of workers: URLs, or files with what they answered')
    .option('--models <folder>', 'model repository (default: the settings)')
    .option('--pool <name>', 'only workers of this pool')
    .option('--write', "write the fit of the dense kernel into each version's cost.json", false)
    .option('--json', 'print one JSON object per line instead of text', false)
    .addHelpText(
      'after',
      `
Workers keep sums over their batches since they started (millrace_cost_moments_total); those of all pages are added up. A fit needs ${BATCHES_MIN} batches, of
requests that differ in candidates by a tenth or more, and that it is off by
half at most: where other processes take the machine, times say more of them. "off by" is the root of the mean square of the error over those batches, beside that of the cost model in use. What is fitted
is the share of a request in live batches: where requests are computed many at a time, it is less than what one costs alone.
--write changes cost.json, which belongs to a version: extractors read it when they start, and a published version gets another digest by it.

Examples:
  millrace profile refit http://127.0.0.1:9464/metrics
  curl -s http://worker-1:9464/metrics > worker-1.txt; millrace profile refit worker-1.txt --pool cpu --json
  millrace profile refit http://worker-1:9464/metrics http://worker-2:9464/metrics --write`,
    )
    .action((places: string[], flags: RefitFlags, command: Command) =>
      // Options of the same name before the word `refit`, or after it: commander gives both to `profile`.
      refit(context, places, { ...flags, ...command.optsWithGlobals() }),
    );
}

async function refit(context: CliContext, places: readonly string[], flags: RefitFlags): Promise<void> {
  const { settings } = loadSettings(context.environment, { models: flags.models });
  const repository = await openModels(settings, cliTelemetry(settings));
  const pages = await Promise.all(places.map(pageAt));
  const samples = pages.map((page) => samplesOf(page, METRIC));
  const groups = groupsOf(samples.map((page) => page.filter(({ labels }) => isOf(labels, flags.pool))));
  if (groups.size === 0)
    throw new MillraceError('INVALID_CONFIG', 'the pages tell of no batch', {
      value: places.join(', '),
      allowed: `metrics pages of workers that computed something: ${METRIC}`,
    });
  const refits = [...groups.values()].map((group) => refitOf(repository, group));
  const usable = refits.filter(({ refused }) => refused === undefined);
  if (usable.length === 0) context.exitCode = 1;
  const written = flags.write ? write(repository, usable) : [];
  const lines = flags.json
    ? refits.map((one) => JSON.stringify(one))
    : [...refitLines(refits), ...written.map((file) => `written: ${file}`)];
  context.stdout.write(`${lines.join('\n')}\n`);
}

async function pageAt(place: string): Promise<string> {
  return /^https?:\/\//.test(place)
    ? await fetchMetricsPage(place)
    : readUserFile(place, 'the metrics page', PAGE_BYTES_MAX).toString('utf8');
}

function isOf(labels: ReadonlyMap<string, string>, pool: string | undefined): boolean {
  return pool === undefined || labels.get('pool') === pool;
}

interface Group {
  readonly family: string;
  readonly version: string;
  readonly kernel: string;
  readonly moments: Map<string, number>;
}

/** A page that was cut short is none: what is left of its sums fits other costs. */
function groupsOf(pages: readonly (readonly PageSample[])[]): Map<string, Group> {
  const groups = new Map<string, Group>();
  for (const page of pages) {
    for (const [key, { moments, ...names }] of groupsOfPage(page)) {
      const group = groups.get(key) ?? { ...names, moments: new Map<string, number>() };
      for (const name of MOMENT_NAMES)
        group.moments.set(name, (group.moments.get(name) ?? 0) + (moments.get(name) ?? Number.NaN));
      groups.set(key, group);
    }
  }
  return groups;
}

function groupsOfPage(samples: readonly PageSample[]): Map<string, Group> {
  const groups = new Map<string, Group>();
  for (const { labels, value } of samples) {
    const [family, version, kernel, moment] = ['model', 'version', 'kernel', 'moment'].map((name) =>
      labels.get(name),
    );
    if (family === undefined || version === undefined || kernel === undefined || moment === undefined)
      continue;
    const key = `${family}@${version} ${kernel}`;
    const group = groups.get(key) ?? { family, version, kernel, moments: new Map<string, number>() };
    group.moments.set(moment, (group.moments.get(moment) ?? 0) + value);
    groups.set(key, group);
  }
  return groups;
}

function refitOf(repository: ModelRepository, { family, version, kernel, moments }: Group): Refit {
  const coefficients = fitMoments(moments).map((value) => Number(value.toPrecision(DIGITS)));
  const error = momentsError(moments, coefficients);
  const known = versionOf(repository, family, version);
  const now = known === undefined ? undefined : coefficientsOf(known.cost);
  return {
    ...{ family, version, kernel, coefficients },
    batches: moments.get('batches') ?? 0,
    refused: refusalOf(moments, error),
    error,
    errorNow: now === undefined ? undefined : momentsError(moments, now),
  };
}

function refusalOf(moments: ReadonlyMap<string, number>, error: number): string | undefined {
  const missing = MOMENT_NAMES.find((name) => !Number.isFinite(moments.get(name)));
  if (missing !== undefined) return `not whole: a page lacks the moment ${missing}, or it is too large`;
  if ((moments.get('batches') ?? 0) < BATCHES_MIN) return `too few: ${BATCHES_MIN} are needed`;
  if (!tellsCandidatesApart(moments)) return 'too alike: requests of other sizes are needed';
  if (Number.isNaN(error)) return 'inconsistent: these are the sums of no batches';
  return error > ERROR_MAX ? 'too noisy: times hardly depend on what was computed' : undefined;
}

function versionOf({ families }: ModelRepository, family: string, version: string): ModelVersion | undefined {
  const versions = families.find((each) => each.family === family)?.versions ?? [];
  return versions.find((each) => each.version === version);
}

/** In the order of `MOMENT_FEATURES`; undefined where the model has others. */
function coefficientsOf({ terms }: CostModel): number[] | undefined {
  const places = [
    [0, 0],
    [1, 0],
    [0, 1],
    [1, 1],
  ];
  const placeOf = ({ candidates, rows }: CostTerm): number =>
    places.findIndex(([n, t]) => n === candidates && t === rows);
  if (terms.some((term) => placeOf(term) < 0)) return undefined;
  return places.map((_, place) =>
    terms.reduce((sum, term) => sum + (placeOf(term) === place ? term.coefficient : 0), 0),
  );
}

function refitLines(refits: readonly Refit[]): string[] {
  const rows = refits.map(({ family, version, kernel, batches, refused, coefficients, error, errorNow }) => [
    plain(`${family}@${version}`),
    plain(kernel),
    String(batches),
    refused ?? costFormula(MOMENT_FEATURES, coefficients),
    percent(error),
    errorNow === undefined ? '–' : percent(errorNow),
  ]);
  return tableLines(['version', 'kernel', 'batches', 'ms', 'off by', 'cost model in use'], rows);
}

/** Those of the dense kernel, whose versions the repository has: all of them, or none. */
function write(repository: ModelRepository, refits: readonly Refit[]): string[] {
  const texts = refits.flatMap((refit): [string, string][] => {
    const known = versionOf(repository, refit.family, refit.version);
    if (refit.kernel !== KERNEL || known === undefined) return [];
    return [[costPath(known), refittedText(join(repository.root, costPath(known)), refit)]];
  });
  return texts.length === 0 ? [] : writeUserFiles(repository.root, new Map(texts));
}

/** What was fitted in place of what was; the rest of the file is about shapes, and stays. */
function refittedText(file: string, refit: Refit): string {
  const text = readUserFile(file, 'the cost model').toString('utf8');
  const {
    medianRelativeError: _,
    p95RelativeError: __,
    ...cost
  } = parseAs(file, costSchema, readJson(file, text));
  const terms = MOMENT_FEATURES.map((feature, n) => ({ feature, coefficient: refit.coefficients[n] ?? 0 }));
  const kept = terms.filter(({ coefficient }) => coefficient > 0);
  const fitted = {
    ...cost,
    features: kept.map(({ feature }) => feature),
    coefficients: kept.map(({ coefficient }) => coefficient),
    rmsRelativeError: Number(refit.error.toFixed(DIGITS)),
    measured: { batches: refit.batches },
    machine: 'live batches of workers',
  };
  return `${JSON.stringify(fitted, null, 2)}\n`;
}

/** A page is whatever somebody gave for one. */
function plain(name: string): string {
  return cutText(name.replaceAll(/[^\x20-\x7e]/g, '?'), NAME_SHOWN_MAX);
}

function percent(share: number): string {
  return `${Number((100 * share).toPrecision(3))} %`;
}

import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ItemTableCache } from '../src/inference/items/item-table-cache.ts';
import { ItemTableWriter } from '../src/inference/items/item-table-writer.ts';
import { startStack } from '../src/local-stack/start-stack.ts';
import { ITEM_FEATURES, readCatalogue } from '../src/traffic/catalogue.ts';
import { type Draw, LOOKUP_ROWS, timeLookups } from './item-tables/lookups.ts';
import { buildTable, FOLDER, memoryOf, type TableShape } from './item-tables/tables.ts';
import { compare, medianOf, ratio } from './pipeline/compare.ts';
import { type Effort, readEffort } from './pipeline/options.ts';
import type { RunResult, Variant } from './pipeline/run-once.ts';
import type { BenchRow } from './run.ts';

const ROWS = 1_000_000;
/** So few that they stay in the processor's caches. */
const NEAR_ROWS = 4_000;
const MEMORY_RATIO_MAX = 1.1;
const LOOKUP_US_MAX = 30;
const PIPELINE_RATIO_MIN = 3;
const CANDIDATES = 256;
const WINDOW = 512;

const WIDE: TableShape = { name: 'wide', rows: ROWS, width: 64, datatype: 'float32', ids: 'numbers' };
const TABLES: readonly TableShape[] = [
  WIDE,
  { ...WIDE, name: 'texts', ids: 'texts' },
  { ...WIDE, name: 'int8', datatype: 'int8' },
  { ...WIDE, name: 'narrow', width: 32 },
];

/**
 * Item tables: the memory of a table of a million rows, the time to find 256 rows by their ids and write them into a batch, and requests/s of the
 * whole pipeline on a real Kafka with ids in place of inline rows. The pipeline's variants take turns, as in the benchmark of the pipeline.
 *
 *   npm run bench -- item-tables --rounds 3 --seconds 8 --warm-up 8 --only tables,pipeline --disturbed
 */
export async function run(options: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const effort = readEffort(options, { rounds: 3, seconds: 8, warmUp: 8 });
  const isWanted = (part: string): boolean => effort.only.length === 0 || effort.only.includes(part);
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-bench-')));
  try {
    return {
      rows: [
        ...(isWanted('tables') ? await tableRows(root) : []),
        ...(isWanted('pipeline') ? await pipelineRows(root, effort) : []),
      ],
    };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function tableRows(root: string): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  await buildTable(root, { ...WIDE, name: 'small', rows: 4 });
  const near = { ...WIDE, name: 'near', rows: NEAR_ROWS };
  await buildTable(root, near);
  rows.push(...(await lookupRows(root, near, `${NEAR_ROWS} × 64 float32, near the processor`)));
  for (const shape of TABLES) {
    const what = `1 M × ${shape.width} ${shape.datatype}, ids are ${shape.ids}`;
    const { rowsPerSecond } = await buildTable(root, shape);
    const { grownBytes, loadMs } = await memoryOf(root, shape.name);
    const rawBytes = shape.rows * shape.width * (shape.datatype === 'int8' ? 1 : 4);
    rows.push(
      { metric: `rows built a second, ${what}`, value: rowsPerSecond, unit: '1/s' },
      { metric: `loaded and checked, ${what}`, value: loadMs / 1_000, unit: 's' },
      {
        metric: `resident memory / rows alone, ${what}`,
        value: grownBytes / rawBytes,
        unit: '×',
        ...(isMain(shape) ? { target: MEMORY_RATIO_MAX, relation: '<=' as const } : {}),
      },
      ...(await lookupRows(root, shape, what)),
    );
  }
  return rows;
}

async function lookupRows(root: string, shape: TableShape, what: string): Promise<BenchRow[]> {
  const table = await new ItemTableCache().load({ root, folder: FOLDER, table: shape.name });
  return (['popular', 'even'] as const).flatMap((draw: Draw): BenchRow[] => {
    const { lookupUs, copyUs } = timeLookups(table, shape, draw);
    const drawn = `ids drawn ${draw === 'even' ? 'evenly' : "by Zipf's law"}, ${what}`;
    return [
      {
        metric: `${LOOKUP_ROWS} rows found and written, ${drawn}`,
        value: lookupUs,
        unit: 'µs',
        ...(isMain(shape) ? { target: LOOKUP_US_MAX, relation: '<=' } : {}),
      },
      {
        metric: `${LOOKUP_ROWS} rows written, ${drawn}`,
        value: copyUs,
        unit: 'µs',
        peer: 'their places known',
      },
    ];
  });
}

/** The one that the targets are about. */
function isMain({ datatype, width, ids }: TableShape): boolean {
  return datatype === 'float32' && width === 64 && ids === 'numbers';
}

async function pipelineRows(root: string, effort: Effort): Promise<BenchRow[]> {
  const environment = { MILLRACE_MODELS: await modelsWithTable(root) };
  const variantOf = (byIds: boolean): Variant => ({
    ...{ kind: 'pipeline', layout: 'one-process', environment },
    requests: { candidates: CANDIDATES, byIds },
  });
  const stack = await startStack();
  try {
    const compared = await compare(
      stack,
      { inline: variantOf(false), ids: variantOf(true) },
      {
        requestBytes: 0,
        load: { kind: 'closed', window: WINDOW },
        warmUp: { ms: effort.warmUpMs, requests: 5_000 },
        measureMs: effort.measureMs,
        disturbed: effort.disturbed,
      },
      effort.rounds,
    );
    return [
      ...observed('inline rows', compared.inline),
      ...observed('ids', compared.ids),
      {
        metric: `requests/s, ids / inline rows, ${CANDIDATES} × ${ITEM_FEATURES}`,
        value: ratio(compared.ids, compared.inline, ({ perSecond }) => perSecond),
        unit: '×',
        target: PIPELINE_RATIO_MIN,
        relation: '>=',
      },
      {
        metric: `requests per CPU second, broker's included, ids / inline rows, ${CANDIDATES} × ${ITEM_FEATURES}`,
        value: ratio(compared.ids, compared.inline, ({ cpuUs, brokerCpuUs }) => 1 / (cpuUs + brokerCpuUs)),
        unit: '×',
      },
    ];
  } finally {
    await stack.stop();
  }
}

function observed(what: string, results: readonly RunResult[]): BenchRow[] {
  const row = (metric: string, unit: string, of: (result: RunResult) => number): BenchRow => ({
    metric: `${metric}, ${what}, ${CANDIDATES} × ${ITEM_FEATURES}, real Kafka, no model's arithmetic`,
    value: medianOf(results, of),
    unit,
  });
  return [
    row('requests/s', '1/s', ({ perSecond }) => perSecond),
    row('p50 of the closed loop', 'ms', ({ latencyMsP50 }) => latencyMsP50),
    row('CPU a request', 'µs', ({ cpuUs }) => cpuUs),
    row('CPU of the broker a request', 'µs', ({ brokerCpuUs }) => brokerCpuUs),
  ];
}

/** The committed ranker, its catalogue in a table. */
async function modelsWithTable(root: string): Promise<string> {
  const models = join(root, 'models');
  const folder = join(models, 'ranker', '1');
  cpSync(join(import.meta.dirname, '../models/repository/ranker/1'), folder, { recursive: true });
  const config = join(folder, 'config.yaml');
  const named = 'axes: [candidate, feature], table: { name: catalogue, unknown: reject } }';
  writeFileSync(config, readFileSync(config, 'utf8').replace('axes: [candidate, feature] }', named));
  const catalogue = readCatalogue(join(import.meta.dirname, '../models/catalogue'));
  const writer = await ItemTableWriter.open({
    ...{ folder, name: 'catalogue', version: '1', datatype: 'float32', defaultRow: { kind: 'mean' } },
    columns: Array.from({ length: ITEM_FEATURES }, (_, column) => `f_${column}`),
  });
  catalogue.itemIds.forEach((id, item) => {
    writer.add(String(id), catalogue.itemFeatures.subarray(item * ITEM_FEATURES, (item + 1) * ITEM_FEATURES));
  });
  await writer.finish();
  return models;
}

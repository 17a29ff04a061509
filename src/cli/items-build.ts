import { extname, resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { openCsv } from '../adapters/item-source/csv.ts';
import { openParquet } from '../adapters/item-source/parquet.ts';
import { fileError, userFilePath } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
import { type DefaultRow, ItemTableWriter } from '../inference/items/item-table-writer.ts';
import type { Manifest } from '../inference/items/manifest.ts';
import { manifestFile, rowsFile } from '../inference/items/read-item-table.ts';
import type { ItemColumns, ItemSource } from '../ports/item-source.ts';
import type { CliContext } from './context.ts';
import { checkWidth, tableOf } from './items-config.ts';
import { Progress } from './progress.ts';

interface BuildFlags {
  input: string;
  id: string;
  features?: string;
  prefix?: string;
  type: 'float32' | 'int8';
  default: DefaultRow;
  output: string;
  table?: string;
  tableVersion?: string;
  json?: boolean;
}

/** `millrace items build`: a CSV or Parquet file becomes an item table of a model version. */
export function itemsBuildCommand(context: CliContext): Command {
  return new Command('build')
    .description('Build an item table from a CSV or Parquet file')
    .requiredOption('--input <file>', 'items.csv (UTF-8, with a line of column names) or items.parquet')
    .requiredOption('--id <column>', 'column of the ids: whole numbers or any text')
    .option('--features <columns>', 'columns of the features, separated by commas, in the order of the input')
    .option('--prefix <text>', 'in its place: every column whose name begins so, in the order of the file')
    .addOption(
      new Option(
        '--type <type>',
        'int8 takes a quarter of the memory; a value is off by 1/254 of the largest of its column at most',
      )
        .choices(['float32', 'int8'])
        .default('float32'),
    )
    .addOption(
      new Option('--default <row>', 'row of ids that the table does not have: mean, zeros, or id=<id>')
        .argParser(readDefault)
        .default({ kind: 'mean' } satisfies DefaultRow, 'mean'),
    )
    .requiredOption('--output <folder>', "the model version's folder, such as models/repository/ranker/1")
    .option(
      '--table <name>',
      'name of the table; where left out, the one that config.yaml in the folder names',
    )
    .option(
      '--table-version <text>',
      'version of the table, which results name; the time of the build where left out',
    )
    .option('--json', 'print one JSON object instead of text', false)
    .addHelpText(
      'after',
      `
Writes items.<table>.json and items.<table>.bin into the folder; workers that serve from it take another table within worker.itemTablesLookMs,
without a restart. The input of the model that it is for says so in config.yaml:
  - { name: item, side: candidate, …, table: { name: catalogue, unknown: default } }

Exit code: 0 written, 2 refused; then the table that was there before stays.

Examples:
  millrace items build --input items.csv --id item_id --prefix f_ --output models/repository/ranker/1 --table catalogue
  millrace items build --input items.parquet --id sku --features price,age,ctr --type int8 --default zeros --output my-models/feed/3`,
    )
    .action((flags: BuildFlags) => build(context, flags));
}

async function build(context: CliContext, flags: BuildFlags): Promise<void> {
  const columns = columnsOf(flags);
  const folder = resolve(flags.output);
  const table = await tableOf(folder, flags.table);
  const source = await openItems(flags.input, columns);
  try {
    checkWidth(table, source.columns);
    const version = flags.tableVersion ?? new Date(context.clock.wallMs()).toISOString();
    const manifest = await writeTable(context, source, {
      ...{ folder, name: table.name, version, columns: source.columns },
      ...{ datatype: flags.type, defaultRow: flags.default },
    });
    context.stdout.write(
      flags.json === true
        ? `${JSON.stringify(report(manifest, folder))}\n`
        : describe(manifest, folder, table.isNamed),
    );
  } finally {
    await source.close();
  }
}

function columnsOf({ id, features, prefix }: BuildFlags): ItemColumns {
  if ((features === undefined) === (prefix === undefined))
    throw new MillraceError('INVALID_CONFIG', 'which columns are features?', {
      allowed: 'either --features <columns> or --prefix <text>',
    });
  if (prefix !== undefined) return { id, features: { prefix } };
  const names = (features ?? '').split(',').map((name) => name.trim());
  return { id, features: { names: names.filter((name) => name !== '') } };
}

async function openItems(input: string, columns: ItemColumns): Promise<ItemSource> {
  const open = { '.csv': openCsv, '.parquet': openParquet, '.pq': openParquet }[extname(input).toLowerCase()];
  if (open === undefined)
    throw new MillraceError('INVALID_CONFIG', 'the items are in no format that is read', {
      value: input,
      allowed: 'files that end with .csv, .parquet or .pq',
    });
  return open(userFilePath(input), columns).catch((error: unknown) => {
    throw error instanceof MillraceError
      ? error
      : fileError('the items cannot be read', input, error, 'read');
  });
}

async function writeTable(
  context: CliContext,
  source: ItemSource,
  options: Parameters<typeof ItemTableWriter.open>[0],
): Promise<Manifest> {
  const over = context.interruption();
  // What the source throws is not of this kind: only what writes is wrapped.
  const written = <T>(writing: Promise<T>): Promise<T> =>
    writing.catch((error: unknown) => {
      throw error instanceof MillraceError
        ? error
        : fileError('the table cannot be written', options.folder, error, 'written');
    });
  const writer = await written(ItemTableWriter.open(options));
  const progress = new Progress(context.stderr, context.clock, {
    total: source.total,
    done: () => source.done(),
    line: () =>
      `building: ${Math.floor((source.done() / Math.max(1, source.total)) * 100)} % of the source read`,
  });
  try {
    for await (const rows of source.rows()) {
      if (over.aborted) throw new MillraceError('CLOSED', 'the build was interrupted; nothing was changed');
      for (const { id, values } of rows) {
        if (writer.isFull) await written(writer.flush());
        writer.add(id, values);
      }
    }
    return await written(writer.finish());
  } finally {
    progress.end();
    await writer.discard();
  }
}

function readDefault(text: string): DefaultRow {
  if (text === 'mean' || text === 'zeros') return { kind: text };
  if (text.startsWith('id=')) return { kind: 'item', id: text.slice('id='.length) };
  throw new InvalidArgumentError('Allowed: mean, zeros, or id=<id>.');
}

function report(
  { name, version, rows, columns, datatype, ids, bytes, digest }: Manifest,
  folder: string,
): object {
  const files = [manifestFile(name), rowsFile(name)].map((file) => `${folder}/${file}`);
  return { table: name, version, rows, columns, datatype, ids, bytes, digest, files };
}

function describe(
  { name, version, rows, columns, datatype, ids, bytes }: Manifest,
  folder: string,
  isNamed: boolean,
): string {
  const lines = [
    `${name}@${version}: ${rows} rows of ${columns.length} × ${datatype}, ids ${ids}, ${sizeOf(bytes)} on disk and in memory`,
    `written: ${folder}/${manifestFile(name)}`,
    `written: ${folder}/${rowsFile(name)}`,
  ];
  if (!isNamed)
    lines.push(
      `No input in config.yaml of the folder names it yet: table: { name: ${name}, unknown: default }`,
    );
  return `${lines.join('\n')}\n`;
}

function sizeOf(bytes: number): string {
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

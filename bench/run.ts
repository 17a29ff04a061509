import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { drawPerformancePage } from './performance-page.ts';

/** One figure of a benchmark. `peer` names what it is measured against, where the row is of something that is not ours. */
export interface BenchRow {
  metric: string;
  value: number;
  unit: string;
  target?: number;
  relation?: '<=' | '>=';
  peer?: string;
}

export interface BenchResult {
  name: string;
  command: string;
  date: string;
  machine: string;
  versions: Record<string, string>;
  rows: BenchRow[];
}

const folder = join(import.meta.dirname, 'results');
const LIBRARIES = ['kafkajs', '@platformatic/kafka', 'avsc', 'onnxruntime-node', 'ioredis', '@grpc/grpc-js'];

/** `npm run bench -- <name> [options]`: runs bench/<name>.ts, keeps its newest result, draws docs/performance.md anew. */
async function main(args: readonly string[]): Promise<void> {
  const [name, ...options] = args;
  const names = readdirSync(import.meta.dirname)
    .filter(
      (file) => file.endsWith('.ts') && !['run.ts', 'performance-page.ts'].includes(file) && exportsRun(file),
    )
    .map((file) => file.slice(0, -3));
  if (name === undefined || !names.includes(name)) {
    console.error(`which benchmark? ${names.join(', ')}`);
    process.exitCode = 2;
    return;
  }
  const { run } = (await import(join(import.meta.dirname, `${name}.ts`))) as {
    run(options: readonly string[]): Promise<{ rows: BenchRow[] }>;
  };
  const { rows } = await run(options);
  const result: BenchResult = {
    name,
    command: ['npm run bench --', name, ...options].join(' '),
    date: new Date().toISOString().slice(0, 10),
    machine: `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform}`,
    versions: versions(),
    rows: rows.map((row) => ({ ...row, value: Number(row.value.toPrecision(4)) })),
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(result, null, 2)}\n`);
  writeFileSync(
    join(import.meta.dirname, '..', 'docs', 'performance.md'),
    drawPerformancePage(readResults()),
  );
  for (const row of result.rows)
    console.log(
      `${row.metric.padEnd(56)} ${String(row.value).padStart(10)} ${row.unit.padEnd(12)} ${verdict(row)}`,
    );
}

function exportsRun(file: string): boolean {
  return /export (async )?function run\b/.test(readFileSync(join(import.meta.dirname, file), 'utf8'));
}

export function verdict(row: BenchRow): string {
  if (row.target === undefined || row.relation === undefined) return '';
  const met = row.relation === '<=' ? row.value <= row.target : row.value >= row.target;
  return `${met ? 'met' : 'MISSED'} (${row.relation} ${row.target})`;
}

function versions(): Record<string, string> {
  const found: Record<string, string> = { node: process.versions.node };
  for (const library of LIBRARIES) {
    const manifest = join(import.meta.dirname, '..', 'node_modules', library, 'package.json');
    if (existsSync(manifest))
      found[library] = String((JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version);
  }
  try {
    found['commit'] = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  } catch {
    found['commit'] = 'unknown';
  }
  return found;
}

function readResults(): BenchResult[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as BenchResult);
}

if (import.meta.main) await main(process.argv.slice(2));

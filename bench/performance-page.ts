import type { BenchResult, BenchRow } from './run.ts';

/** docs/performance.md, from the newest result of each benchmark. */
export function drawPerformancePage(results: readonly BenchResult[]): string {
  return [
    '# Performance',
    '',
    'Drawn by `npm run bench -- <name>` from `bench/results/`. Each figure was measured on one machine in one run, by the command that stands above it;',
    'ratios compare two things in that same run. A benchmark never fails a build: machines are noisy.',
    '',
    ...results.flatMap(section),
  ].join('\n');
}

function section(result: BenchResult): string[] {
  const versions = Object.entries(result.versions).map(([name, version]) => `${name} ${version}`);
  return [
    `## ${result.name}`,
    '',
    `    ${result.command}`,
    '',
    `${result.date}, ${result.machine}; ${versions.join(', ')}.`,
    '',
    '| metric | value | target | |',
    '| --- | --- | --- | --- |',
    ...result.rows.map(line),
    '',
  ];
}

function line(row: BenchRow): string {
  const target =
    row.target === undefined || row.relation === undefined
      ? ''
      : `${row.relation === '<=' ? '≤' : '≥'} ${row.target}`;
  const met = row.target === undefined || row.relation === undefined ? '' : isMet(row) ? 'met' : '**missed**';
  return `| ${row.metric}${row.peer === undefined ? '' : ` (${row.peer})`} | ${row.value} ${row.unit} | ${target} | ${met} |`;
}

function isMet(row: BenchRow): boolean {
  const { value, target = 0, relation } = row;
  return relation === '<=' ? value <= target : value >= target;
}

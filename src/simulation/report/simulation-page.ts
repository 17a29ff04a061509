import type { Comparison, PairedDifference } from './compare.ts';
import { PAGE_SCRIPT } from './page-script.ts';
import type { SimulationReport } from './simulation-report.ts';
import type { SimulationResult } from './simulation-result.ts';

/** The library that draws, as texts that go into the page. */
export interface ChartLibrary {
  readonly script: string;
  readonly style: string;
  readonly licence: string;
}

const STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1100px; padding: 1rem; color: #1f2937; background: #fff; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; }
th, td { text-align: left; padding: 0.2rem 1rem 0.2rem 0; border-bottom: 1px solid #d1d5db; font-variant-numeric: tabular-nums; }
.simulated { background: #fef3c7; border: 1px solid #b45309; padding: 0.5rem 1rem; }
label { margin-right: 1rem; }
#charts > div { margin: 1rem 0; overflow-x: auto; }
`;

/**
 * One page with everything in it: tables without any script, charts with the library's. It loads nothing, and its policy forbids that it would.
 * Whatever stands in the result is text in the page.
 */
export function simulationPage(result: SimulationResult, library: ChartLibrary): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<title>millrace: simulation</title>
<style>${library.style}${STYLE}</style>
</head>
<body>
<h1>Simulation</h1>
<p class="simulated"><strong>Simulated.</strong> Stages ran in virtual time; service times come from profiles, no device was measured.</p>
${runsTable(result.runs)}
${result.comparisons.map(comparisonTable).join('\n')}
${notesOf(result.runs)}
<h2>Over time</h2>
<p>
<label>Run <select id="first"></select></label>
<label>beside <select id="second"></select></label>
Drag over a chart to zoom into all of them, double-click to see everything. The second run is dashed.
</p>
<div id="charts"></div>
<noscript>The charts need JavaScript; the tables do not.</noscript>
<script type="application/json" id="result">${scriptSafe(JSON.stringify(result))}</script>
<!-- ${library.licence.replaceAll('--', '- -')} -->
<script>${library.script}</script>
<script>${PAGE_SCRIPT}</script>
</body>
</html>
`;
}

/** Text as HTML shows it. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

/** JSON that cannot end the element that it stands in. */
function scriptSafe(json: string): string {
  return json.replaceAll('<', '\\u003c');
}

function table(headers: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (tag: string, texts: readonly string[]): string =>
    texts.map((text) => `<${tag}>${escapeHtml(text)}</${tag}>`).join('');
  const body = rows.map((row) => `<tr>${cells('td', row)}</tr>`).join('\n');
  return `<table><thead><tr>${cells('th', headers)}</tr></thead><tbody>\n${body}\n</tbody></table>`;
}

function runsTable(runs: readonly SimulationReport[]): string {
  const headers = [
    'policy',
    'fleet',
    'traffic',
    'seed',
    'requests',
    'scored',
    'degraded',
    'expired',
    'rejected',
    'dead-lettered',
    'in flight',
    'p50 ms',
    'p99 ms',
  ];
  const rows = runs.map(({ policy, fleet, traffic, durationMs, seed, ledger, latency }) => [
    `${policy.name}@${policy.version}`,
    fleet,
    `${traffic}, ${durationMs / 1_000} s`,
    ...[seed, ledger.ingress, ...Object.values(ledger.outcomes), ledger.inFlight].map(String),
    shown(latency.p50Ms),
    shown(latency.p99Ms),
  ]);
  return table(headers, rows);
}

function comparisonTable({ first, other, differences }: Comparison): string {
  const row = ({ figure, unit, ...of }: PairedDifference): string[] => [
    `${figure}, ${unit}`,
    shown(of.first),
    shown(of.other),
    shown(of.difference),
    of.interval95 === null
      ? 'of one run: none'
      : `${shown(of.interval95.low)} … ${shown(of.interval95.high)}`,
    of.isDistinct ? 'distinct' : '',
  ];
  const rows = differences.filter(({ pairs }) => pairs > 0).map(row);
  return `<h2>${escapeHtml(`${first} against ${other}`)}</h2>
${table(['figure', first, other, 'difference', '95 % interval', ''], rows)}`;
}

function notesOf(runs: readonly SimulationReport[]): string {
  const notes = runs.flatMap(({ policy, seed, notes: own }) =>
    own.map((note) => `<li>${escapeHtml(`${policy.name}@${policy.version}, seed ${seed}: ${note}`)}</li>`),
  );
  return notes.length === 0 ? '' : `<ul>${notes.join('')}</ul>`;
}

function shown(value: number | null): string {
  return value === null ? '–' : String(Number(value.toPrecision(4)));
}

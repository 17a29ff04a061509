/**
 * What the page of a report does in the browser, as it stands there: it draws the charts of one run, or of two over each other, from the JSON in the page.
 * Text reaches the page as text alone.
 */
export const PAGE_SCRIPT = `
'use strict';
const result = JSON.parse(document.getElementById('result').textContent);
const COLOURS = ['#0b62a4', '#c2410c', '#15803d', '#7e22ce', '#a16207', '#be123c', '#0e7490', '#4d7c0f', '#6b7280'];
const OUTCOMES = ['scored', 'degraded', 'expired', 'rejected', 'deadLettered'];
const charts = [];
let isZooming = false;

const nameOf = (run) => run.policy.name + '@' + run.policy.version + ', seed ' + run.seed;
const perSecond = (values, stepMs) => values.map((value) => (value * 1000) / stepMs);

/** Chart by chart: its title, its unit, and its lines from a run. */
const CHARTS = [
  ['Latency', 'ms', (run) => [['p50', run.series.p50Ms], ['p99', run.series.p99Ms]]],
  ['Outcomes', 'per second', ({ series }) => [
    ['arrivals', perSecond(series.arrivals, series.stepMs)],
    ...OUTCOMES.map((outcome) => [outcome, perSecond(series.outcomes[outcome], series.stepMs)]),
  ]],
  ['Requests in flight', 'requests', (run) => [['whole pipeline', run.series.inFlight]]],
  ['Queues of the workers', 'requests', (run) => run.series.pools.map(({ pool, queued }) => [pool, queued])],
  ['Utilisation', '%', (run) => run.series.pools.map(({ pool, utilisation }) => [
    pool, utilisation.map((share) => (share === null ? null : share * 100)),
  ])],
  ['Workers', 'workers', (run) => run.series.pools.map(({ pool, workers }) => [pool, workers])],
];

/** Both runs on the times of the one with the finer steps; where a run has no step of its own, nothing is drawn. */
function aligned(runs, linesOf) {
  const times = [...new Set(runs.flatMap((run) => run.series.arrivals.map((_, i) => (i + 1) * run.series.stepMs)))].sort((a, b) => a - b);
  const lines = runs.flatMap((run, which) => linesOf(run).map(([name, values], place) => ({
    label: runs.length === 1 ? name : name + (which === 0 ? ' · first' : ' · second'),
    stroke: COLOURS[place % COLOURS.length],
    dash: which === 0 ? undefined : [6, 4],
    values: times.map((time) => { const at = time / run.series.stepMs - 1; return Number.isInteger(at) ? (values[at] ?? null) : undefined; }),
  })));
  return { times: times.map((ms) => ms / 1000), lines };
}

function draw([title, unit, linesOf], runs) {
  const { times, lines } = aligned(runs, linesOf);
  const holder = document.createElement('div');
  document.getElementById('charts').append(holder);
  const chart = new uPlot({
    title: title + ', ' + unit,
    width: Math.max(320, document.getElementById('charts').clientWidth),
    height: 240,
    scales: { x: { time: false } },
    cursor: { sync: { key: 'runs' } },
    axes: [{ label: 'virtual time, s' }, { size: 70 }],
    series: [{ label: 's' }, ...lines.map(({ label, stroke, dash }) => ({ label, stroke, dash, width: 1.5 }))],
    hooks: { setScale: [(moved, scale) => zoomAll(moved, scale)] },
  }, [times, ...lines.map(({ values }) => values)], holder);
  charts.push(chart);
}

/** All charts show the same stretch of time. */
function zoomAll(moved, scale) {
  if (scale !== 'x' || isZooming) return;
  isZooming = true;
  const { min, max } = moved.scales.x;
  for (const chart of charts) if (chart !== moved) chart.setScale('x', { min, max });
  isZooming = false;
}

function show() {
  for (const chart of charts.splice(0)) chart.destroy();
  document.getElementById('charts').replaceChildren();
  const first = result.runs[Number(document.getElementById('first').value)];
  const second = result.runs[Number(document.getElementById('second').value)];
  const runs = second === undefined ? [first] : [first, second];
  isZooming = true;
  for (const chart of CHARTS) draw(chart, runs);
  isZooming = false;
}

function option(value, text) {
  const element = document.createElement('option');
  element.value = value;
  element.textContent = text;
  return element;
}

const [first, second] = ['first', 'second'].map((id) => document.getElementById(id));
second.append(option('-1', 'none'));
result.runs.forEach((run, index) => {
  first.append(option(String(index), nameOf(run)));
  second.append(option(String(index), nameOf(run)));
});
first.value = '0';
second.value = result.runs.length > 1 ? String(result.runs.findIndex((run) => run.policy.digest !== result.runs[0].policy.digest)) : '-1';
for (const select of [first, second]) select.addEventListener('change', show);
window.addEventListener('resize', () => charts.forEach((chart) => chart.setSize({ width: Math.max(320, document.getElementById('charts').clientWidth), height: 240 })));
show();
`;

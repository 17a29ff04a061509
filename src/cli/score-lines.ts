import { styleText } from 'node:util';
import * as v from 'valibot';
import { finite, recordOf } from '../core/json-values.ts';
import { formatExplanation } from '../core/policy/explain.ts';
import { milliseconds, outcomeText, type ShownResult, servedBy } from './shown-result.ts';
import { tableLines } from './table.ts';

export interface ScoreLinesOptions {
  top: number;
  color: boolean;
  transport: 'embedded' | 'kafka';
  /** Inputs of the family that the request left out. */
  absentInputs: readonly string[];
}

/** A result for a terminal: outcome, best candidates, where it was scored and why there, where the time went. */
export function scoreLines(shown: ShownResult, options: ScoreLinesOptions): string[] {
  const dim = (text: string): string =>
    options.color ? styleText('dim', text, { validateStream: false }) : text;
  return [
    headline(shown, options),
    ...(shown.reason === null ? [] : [`  ${shown.reason.code}: ${shown.reason.message}`]),
    ...absentLines(options.absentInputs),
    ...itemLines(shown),
    ...featureLines(shown),
    ...candidateLines(shown, options.top, dim),
    ...routeLines(shown),
    timingLine(shown),
    ...traceLines(shown.trace),
  ];
}

function headline(shown: ShownResult, { color, transport }: ScoreLinesOptions): string {
  const scored = `${shown.candidatesScored} candidates scored, ${shown.baselineCandidates} asked for`;
  const late = shown.late ? ', late' : '';
  return `${outcomeText(shown.outcome, color)}${late}  ${shown.requestId}  ${servedBy(shown)}  ${scored}  (${transport})`;
}

function absentLines(absentInputs: readonly string[]): string[] {
  if (absentInputs.length === 0) return [];
  return [`  note: the request has no ${absentInputs.join(', no ')}, so it was scored without`];
}

function itemLines({ itemTableVersion, unknownIds }: ShownResult): string[] {
  if (itemTableVersion === '') return [];
  const unknown = unknownIds === 0 ? '' : `; unknown ids: ${unknownIds}, scored by its default row`;
  return [`  items of ${itemTableVersion}${unknown}`];
}

function featureLines({ featureViews, defaultRows }: ShownResult): string[] {
  if (featureViews === '') return [];
  const standIns = defaultRows === 0 ? '' : `; default rows: ${defaultRows}`;
  return [`  features of ${featureViews}${standIns}`];
}

function candidateLines(shown: ShownResult, top: number, dim: (text: string) => string): string[] {
  if (shown.candidates.length === 0) return [];
  const best = shown.candidates.slice(0, top);
  const isTitled = best.some(({ syntheticTitle }) => syntheticTitle !== undefined);
  const isCascade = best.some(({ stage }) => stage !== undefined);
  const rows = best.map(({ rank, id, index, score, stage, syntheticTitle }) => [
    String(rank),
    id ?? `#${index}`,
    score.toFixed(5),
    ...(isCascade ? [String(stage ?? 0)] : []),
    ...(isTitled ? [syntheticTitle ?? ''] : []),
  ]);
  const headers = [
    'rank',
    'id',
    'score',
    ...(isCascade ? ['stage'] : []),
    ...(isTitled ? ['title (synthetic catalogue)'] : []),
  ];
  const [header = '', ...lines] = tableLines(headers, rows);
  const more = shown.candidates.length - best.length;
  return [
    dim(`  ${header}`),
    ...lines.map((line) => `  ${line}`),
    ...(more > 0 ? [dim(`  and ${more} more (--top)`)] : []),
  ];
}

function routeLines({ policy, target, fallback }: ShownResult): string[] {
  return [
    ...(policy === null
      ? []
      : [`leaf    ${policy.leaf}  (policy ${policy.name}@${policy.version}, epoch ${policy.epoch})`]),
    ...(target === null
      ? []
      : [
          `target  ${target.accelerator}, kernel ${target.kernel}, memory ${target.memory}; pool ${target.pool}, worker ${target.worker}${target.simulated ? ' (service times simulated)' : ''}`,
        ]),
    ...(fallback === null ? [] : [`        not the first choice: ${fallback}`]),
  ];
}

function timingLine({ timings }: ShownResult): string {
  const parts = [
    ['in topics', timings.inTopicMs],
    ['extract', timings.extractMs],
    ['route', timings.routeMs],
    ['queue', timings.queueMs],
    ['compute', timings.computeMs],
  ] as const;
  const told = parts.map(([name, ms]) => `${name} ${milliseconds(ms)}`).join(', ');
  const budget = timings.budgetMs > 0 ? ` of ${milliseconds(timings.budgetMs)}` : '';
  return `time    ${milliseconds(timings.totalMs)}${budget}: ${told}`;
}

const TRACE = v.looseObject({
  path: v.object({
    leaf: v.string(),
    steps: v.array(
      v.object({
        node: v.string(),
        when: v.nullable(v.string()),
        outcome: v.picklist(['true', 'false', 'unknown']),
        read: recordOf(v.string(), v.union([finite, v.boolean(), v.string(), v.null()])),
      }),
    ),
  }),
});

/** The policy's steps, then what else the router wrote, as it is: it may come from a newer one. */
function traceLines(trace: unknown): string[] {
  if (trace === null) return [];
  const parsed = v.safeParse(TRACE, trace);
  if (!parsed.success) return ['trace', ...indented(JSON.stringify(trace, null, 2).split('\n'))];
  const { path, policy: _, ...rest } = parsed.output;
  const others = Object.entries(rest).map(([name, value]) => `${name} ${traceValue(name, value)}`);
  return ['trace', ...indented([...formatExplanation(path), ...others])];
}

/** Durations are for people here; --json has them to the last digit. */
function traceValue(name: string, value: unknown): string {
  return typeof value === 'number' && name.endsWith('Ms') ? milliseconds(value) : JSON.stringify(value);
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

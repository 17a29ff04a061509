import { Command } from 'commander';
import type { ControllerEvent } from '../core/control/controller-event.ts';
import { scopeState } from '../core/control/controller-state.ts';
import type { ScopeState } from '../core/rollout/rollout-state.ts';
import type { CliContext } from './context.ts';
import { readControlLog } from './control-log.ts';
import { unknownName } from './decision-history.ts';
import { describeChange, foldLog, type LiveChange } from './live-change.ts';
import { scopeOfPolicy } from './policy-name.ts';
import { type RolloutView, rolloutView } from './rollout-view.ts';
import { tableLines } from './table.ts';
import { waitingFor } from './waiting.ts';
import { withClient } from './with-client.ts';

const POLICY_SCOPE = 'policy/';

/** `millrace policy rollout status <policy>`: where it stands, by the log alone. */
export function rolloutStatusCommand(context: CliContext): Command {
  return new Command('status')
    .description(
      'Show where the rollout of a policy stands: stage, evidence, what would promote it or roll it back',
    )
    .argument('<policy>', 'name of the policy')
    .option('--json', 'print one JSON object instead of text', false)
    .addHelpText(
      'after',
      `
Derived from the log of control events, as the controller derives it: no controller needs to be up. harm E is the evidence that the canary does
worse than 1.1 times the control (a mean of 100 over the metrics rolls back); safe E that it does not do worse than 1.5 times (20 in every metric
lets it go on). An E may be looked at whenever you like. Heads compare what the models said in both arms: PSI above 0.1 is shown as moved, and holds
above the rollout's limit where its noise cannot be why. A stage also needs its dwell time, which stands still on hold and without data.

Needs a running installation: MILLRACE_KAFKA_BROKERS and MILLRACE_REGISTRY_URL. Exit code: 0, also where no rollout runs.

Examples:
  millrace policy rollout status starter
  millrace policy rollout status starter --json | jq .rollout.missing`,
    )
    .action((name: string, flags: { json: boolean }) => status(context, name, flags));
}

async function status(context: CliContext, name: string, flags: { json: boolean }): Promise<void> {
  const scopeName = scopeOfPolicy(name);
  await withClient(context, async (client) => {
    const { events } = await waitingFor(context, 'reading the control events', readControlLog(client));
    if (!events.some((event) => 'scope' in event && event.scope === scopeName))
      throw unknownName('policy', name, policiesOf(events));
    const { state, change } = foldLog(events, scopeName);
    const scope = scopeState(state, scopeName);
    const rollout = rolloutView(scope);
    context.stdout.write(
      flags.json
        ? `${JSON.stringify({ ...scopeView(scopeName, scope), changed: change ?? null, rollout: rollout ?? null })}\n`
        : `${[...scopeLines(scopeName, scope, change), ...(rollout === undefined ? [] : rolloutLines(rollout))].join('\n')}\n`,
    );
  });
}

function policiesOf(events: readonly ControllerEvent[]): string[] {
  const scopes = events.flatMap((event) => ('scope' in event ? [event.scope] : []));
  const own = scopes.filter((scope) => scope.startsWith(POLICY_SCOPE));
  return [...new Set(own)].map((scope) => scope.slice(POLICY_SCOPE.length)).sort();
}

function scopeView(name: string, { live, epoch, published, ended }: ScopeState): object {
  return {
    scope: name,
    epoch,
    live: live ?? null,
    published: published.map(({ version }) => version),
    ended: ended === undefined ? null : { ...ended, at: new Date(ended.atMs).toISOString() },
  };
}

/** What came after the last rollout stands after it: with that alone, another version would seem to be live. */
function scopeLines(name: string, scope: ScopeState, change: LiveChange | undefined): string[] {
  const { live, epoch, published, ended, rollout } = scope;
  const lines = [
    `${name}  epoch ${epoch}`,
    `live       ${live === undefined ? 'nothing' : `version ${live.version}  ${live.digest}`}`,
    `published  ${published.map(({ version }) => version).join(', ') || 'nothing'}`,
  ];
  if (rollout !== undefined) return lines;
  lines.push('rollout    none runs');
  if (ended !== undefined)
    lines.push(
      `the last   version ${ended.candidate.version}: ${ended.outcome} at ${new Date(ended.atMs).toISOString()}: ${ended.reason}`,
    );
  if (change !== undefined && (ended !== undefined || change.how !== 'published'))
    lines.push(`then       ${describeChange(change)}`);
  return lines;
}

function rolloutLines(view: RolloutView): string[] {
  const { hold, missing, against, next } = view;
  return [
    `rollout    ${view.candidate}  ${view.stage} ${view.percent} %  (stage ${view.stageNumber} of ${view.stages}) since ${view.since}`,
    `observed   ${wholeSeconds(view.observedMs)} of ${seconds(view.dwellMs)}, last look ${view.lastLook ?? 'none yet'}`,
    ...armLines(view),
    ...headLines(view),
    ...view.guardrails.map(guardrailLine),
    ...(hold === null
      ? []
      : [`on hold    since ${hold.since}, rolled back at ${hold.rollsBackAt}: ${hold.reasons.join('; ')}`]),
    ...against
      .filter((text) => hold === null || !hold.reasons.includes(text))
      .map((text) => `against    ${text}`),
    ...missing.map((text) => `missing    ${text}`),
    `next       ${next.to}, by ${next.by}, ${next.earliest === null ? 'not while it is on hold' : `at the earliest ${next.earliest}`}`,
    `rolls back on ${view.rollsBack}`,
  ];
}

function armLines({ stage, requests, exposure, evidence }: RolloutView): string[] {
  if (stage === 'shadow') return [`requests   ${requests.shadow} decided by both policies`];
  return [
    `requests   ${requests.canary} canary, ${requests.stable} control; exposure in the last window ${exposure === null ? 'none' : `${(exposure * 100).toFixed(2)} %`}`,
    '',
    ...tableLines(
      ['metric', 'canary', 'control', 'harm E', 'safe E'],
      evidence.map(({ metric, canaryEvents, controlEvents, harmE, safeE }) => [
        metric,
        String(canaryEvents),
        String(controlEvents),
        shortNumber(harmE),
        shortNumber(safeE),
      ]),
    ),
    '',
  ];
}

function headLines({ scores }: RolloutView): string[] {
  if (scores.length === 0) return [];
  return [
    ...tableLines(
      ['head', 'canary', 'control', 'PSI', 'noise', 'mean', 'control mean', 'apart (sd)', ''],
      scores.map((head) => [
        head.head,
        String(head.canary),
        String(head.control),
        shortNumber(head.psi),
        shortNumber(head.psiNoise),
        shortNumber(head.canaryMean),
        shortNumber(head.controlMean),
        `${shortNumber(head.meanShift)} ± ${shortNumber(head.meanShiftError)}`,
        head.moved ? 'moved' : '',
      ]),
    ),
    '',
  ];
}

function guardrailLine({ name, min, max, reading, readAt }: RolloutView['guardrails'][number]): string {
  const bounds = [min === undefined ? '' : `at least ${min}`, max === undefined ? '' : `at most ${max}`];
  const wanted = bounds.filter((bound) => bound !== '').join(', ');
  if (reading === null) return `guardrail  ${name}: not read yet; ${wanted}`;
  if ('failed' in reading) return `guardrail  ${name}: ${reading.failed}; ${wanted}`;
  const { series, lowest, highest } = reading;
  const seen = lowest === highest ? String(highest) : `${lowest} to ${highest} in ${series} series`;
  return `guardrail  ${name}: ${seen} at ${readAt}; ${wanted}`;
}

function shortNumber(value: number): string {
  return value >= 1e6 || (value > 0 && value < 1e-3) ? value.toExponential(1) : value.toPrecision(3);
}

/** Of what has passed: no second more than whole ones. */
function wholeSeconds(ms: number): string {
  return `${Math.floor(ms / 1_000)} s`;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}

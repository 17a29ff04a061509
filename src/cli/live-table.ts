import { styleText } from 'node:util';
import type { LedgerSummary } from '../core/outcome/ledger.ts';
import type { PipelineView, PoolView } from './pipeline-observer.ts';

export interface LiveState {
  elapsedMs: number;
  ledger: LedgerSummary;
  /** Requests per second in the last seconds. */
  ratePerSecond: number;
  view: PipelineView;
  policy: string;
  /** The best candidates of a recent result, by title. */
  sample: { user: string; titles: readonly string[] } | undefined;
  url: string | undefined;
  /** The run is over: this is the last drawing. */
  ended: boolean;
}

type Style = Parameters<typeof styleText>[0];

/** The live table as lines; `color` false gives plain text. */
export function renderLiveTable(state: LiveState, color: boolean): string[] {
  const paint = (style: Style, text: string): string =>
    color ? styleText(style, text, { validateStream: false }) : text;
  const { ledger, view } = state;
  const { outcomes } = ledger;
  return [
    `${paint('bold', 'millrace')}  ${clock(state.elapsedMs)}  ${state.ratePerSecond.toFixed(0)} requests/s  policy ${state.policy} (epoch ${view.policyEpoch})${state.url === undefined ? '' : `  ${state.url}`}`,
    '',
    `  ingress ${ledger.ingress}   ${paint('green', `scored ${outcomes.scored}`)}   degraded ${outcomes.degraded}   ${paint(outcomes.expired > 0 ? 'yellow' : 'dim', `expired ${outcomes.expired}`)}   rejected ${outcomes.rejected}   dead-lettered ${outcomes.deadLettered}   in flight ${ledger.inFlight}`,
    `  end to end p50 ${ms(ledger.latencyMs.p50)}   p99 ${ms(ledger.latencyMs.p99)}`,
    '',
    paint(
      'dim',
      `  ${'pool'.padEnd(14)}${'accelerator'.padEnd(14)}${'workers'.padStart(8)}${'req/s'.padStart(8)}${'p50'.padStart(11)}${'p99'.padStart(11)}${'queue'.padStart(11)}`,
    ),
    ...view.pools.map((pool) => `  ${poolRow(pool)}`),
    ...(view.pools.some((pool) => pool.simulated)
      ? [paint('dim', '  sim: service times are simulated')]
      : []),
    '',
    `  leaves  ${[...view.leafShares].map(([leaf, share]) => `${leaf} ${(share * 100).toFixed(0)} %`).join('   ')}`,
    ...(state.sample === undefined
      ? []
      : [
          paint(
            'dim',
            `  for ${state.sample.user}: ${state.sample.titles.join(' · ')}   (synthetic catalogue)`,
          ),
        ]),
    ...(state.ended ? [] : [paint('dim', '  Ctrl-C drains and ends.')]),
  ];
}

function poolRow(pool: PoolView): string {
  const accelerator = pool.simulated ? `${pool.accelerator} sim` : pool.accelerator;
  return `${pool.pool.padEnd(14)}${accelerator.padEnd(14)}${String(pool.workers).padStart(8)}${pool.rate.toFixed(0).padStart(8)}${ms(pool.p50Ms).padStart(11)}${ms(pool.p99Ms).padStart(11)}${ms(pool.queuedMs).padStart(11)}`;
}

function ms(value: number | null): string {
  return value === null ? '–' : `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`;
}

function clock(elapsedMs: number): string {
  const seconds = Math.floor(elapsedMs / 1_000);
  return `${String(Math.floor(seconds / 60)).padStart(2, '0')}:${String(seconds % 60).padStart(2, '0')}`;
}

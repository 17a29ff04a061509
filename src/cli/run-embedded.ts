import { readFileSync } from 'node:fs';
import { prometheusTelemetry } from '../adapters/prometheus/telemetry.ts';
import { packaged } from '../config/package-root.ts';
import type { Settings } from '../config/settings.ts';
import { MillraceError } from '../core/errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { RandomSource } from '../ports/random.ts';
import { type Arrival, generatedArrivals } from '../traffic/arrivals.ts';
import { readCatalogue } from '../traffic/catalogue.ts';
import { drive } from '../traffic/drive.ts';
import { openOutsideLedger } from '../traffic/outside-ledger.ts';
import { createRequestMaker } from '../traffic/request-maker.ts';
import { openSender } from '../traffic/send-requests.ts';
import { parseTraceInferenceCsv, traceArrivals } from '../traffic/trace-inference-csv.ts';
import { startEmbedded } from '../wiring/embedded.ts';
import { serveHealth } from '../wiring/health-server.ts';
import { whenReady } from '../wiring/ready.ts';
import { type LiveState, renderLiveTable } from './live-table.ts';
import { PipelineObserver } from './pipeline-observer.ts';
import { RecentResults } from './recent-results.ts';
import { Screen, wantsColor } from './screen.ts';

export interface EmbeddedRun {
  clock: Clock;
  random: RandomSource;
  ratePerSecond: number;
  durationMs: number;
  deadlineMs: number | undefined;
  trace: string | undefined;
  json: boolean;
}

const DRAW_MS = 500;
const DRAIN_MS = 10_000;
const READY_MS = 10_000;

/** Starts the embedded pipeline, drives traffic through it, shows it, drains it. Answers the exit code: 0 when the ledger balances. */
export async function runEmbedded(settings: Settings, run: EmbeddedRun): Promise<number> {
  const telemetry = prometheusTelemetry({
    service: 'embedded',
    level: settings.logLevel === 'info' ? 'warn' : settings.logLevel,
    destination: process.stderr,
  });
  const { clock } = run;
  const startedMs = clock.monotonicMs();
  const catalogue = readCatalogue(packaged('', 'models', 'catalogue'));
  const pipeline = await startEmbedded(settings, { telemetry, random: run.random, clock });
  const reason = await whenReady(pipeline.stages, clock, READY_MS);
  if (reason !== undefined)
    throw new MillraceError('STACK_UNAVAILABLE', `the pipeline did not get ready: ${reason}`);
  const health = await serveHealth(settings.http, telemetry, () => pipeline.stages);
  const connection = await pipeline.connect();
  const recent = new RecentResults(catalogue, clock);
  const ledger = await openOutsideLedger(connection, { onResult: (result) => recent.take(result) });
  const observer = await PipelineObserver.open(connection);
  const screen = new Screen(process.stdout);
  const color = wantsColor(process.stdout, process.env);
  const state = (): LiveState => ({
    elapsedMs: clock.monotonicMs() - startedMs,
    ledger: ledger.summary(),
    ratePerSecond: recent.ratePerSecond(),
    view: observer.view(),
    policy: pipeline.policyName,
    sample: recent.sample(),
    url: health.url,
  });
  const stopDrawing =
    run.json || !screen.live
      ? () => undefined
      : clock.every(DRAW_MS, () => screen.draw(renderLiveTable(state(), color)));
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);

  const driven = await drive({
    arrivals: arrivalsOf(run),
    maker: createRequestMaker(
      catalogue,
      run.random.stream('requests'),
      run.deadlineMs === undefined ? {} : { deadlineMs: run.deadlineMs },
    ),
    clock,
    idPrefix: `embedded-${run.random.seed}-`,
    send: await openSender(connection),
    requestsMax: Number.POSITIVE_INFINITY,
    durationMs: run.durationMs,
    signal: stop.signal,
  });
  const drained = await ledger.drained(DRAIN_MS);
  stopDrawing();
  const summary = ledger.summary();
  if (!run.json) print(screen, renderLiveTable(state(), color));
  await observer.close();
  await ledger.close();
  await connection.close();
  await pipeline.close();
  await health.close();
  const { ratePerSecond } = run;
  const report = {
    ...summary,
    seed: run.random.seed,
    ratePerSecond,
    sent: driven.sent,
    refused: driven.refused,
    behindMsMax: Math.round(driven.behindMsMax),
    elapsedMs: Math.round(clock.monotonicMs() - startedMs),
  };
  if (run.json) process.stdout.write(`${JSON.stringify(report)}\n`);
  else process.stdout.write(`\nledger ${JSON.stringify(report)}\n`);
  return drained && summary.balanced ? 0 : 1;
}

function print(screen: Screen, lines: readonly string[]): void {
  if (screen.live) screen.draw(lines);
  else process.stdout.write(`${lines.join('\n')}\n`);
}

function arrivalsOf(run: EmbeddedRun): Iterator<Arrival> {
  if (run.trace !== undefined)
    return traceArrivals(parseTraceInferenceCsv(readFileSync(run.trace, 'utf8')), run.ratePerSecond);
  return generatedArrivals(
    {
      ratePerSecond: run.ratePerSecond,
      burst: { everyMs: 10_000, lengthMs: 1_000, factor: 3 },
      candidatesMax: 256,
      historyRowsMax: 32,
    },
    run.random.stream('arrivals'),
  );
}

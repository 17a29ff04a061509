import { prometheusTelemetry } from '../adapters/prometheus/telemetry.ts';
import type { Connection } from '../client/connection.ts';
import { packaged } from '../config/package-root.ts';
import type { Settings } from '../config/settings.ts';
import { readUserFile } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
import type { LedgerSummary } from '../core/outcome/ledger.ts';
import type { RandomSource } from '../ports/random.ts';
import { type Arrival, generatedArrivals } from '../traffic/arrivals.ts';
import { type Catalogue, readCatalogue } from '../traffic/catalogue.ts';
import { type Driven, drive } from '../traffic/drive.ts';
import { openOutsideLedger } from '../traffic/outside-ledger.ts';
import { createRequestMaker } from '../traffic/request-maker.ts';
import { openSender } from '../traffic/send-requests.ts';
import { parseTraceInferenceCsv, traceArrivals } from '../traffic/trace-inference-csv.ts';
import { type EmbeddedPipeline, startEmbedded } from '../wiring/embedded.ts';
import { type HealthServer, serveHealth } from '../wiring/health-server.ts';
import { whenReady } from '../wiring/ready.ts';
import type { CliContext } from './context.ts';
import { type LiveState, renderLiveTable } from './live-table.ts';
import { PipelineObserver } from './pipeline-observer.ts';
import { Progress } from './progress.ts';
import { RecentResults } from './recent-results.ts';
import { Screen, wantsColor } from './screen.ts';
import { waitingFor } from './waiting.ts';

export interface EmbeddedRun {
  random: RandomSource;
  ratePerSecond: number;
  durationMs: number;
  deadlineMs: number | undefined;
  trace: string | undefined;
  json: boolean;
}

const DRAW_MS = 500;
const DRAIN_MS = 10_000;
const WARM_UP = { ratePerSecond: 300, candidatesMax: 256, historyRowsMax: 32 };
const WARM_UP_REQUESTS = 200;
const READY_MS = 60_000;
/** The pipeline's own log says it as well, at a level that is not shown here. */
const UNSIGNED =
  'millrace: commands to this pipeline need no signature: it is one process. Services refuse unsigned ones, unless controller.acceptUnsigned is set\n';

/** Starts the embedded pipeline, drives traffic through it, shows it, drains it. Answers the exit code: 0 when the ledger balances. */
export async function runEmbedded(
  context: CliContext,
  settings: Settings,
  run: EmbeddedRun,
): Promise<number> {
  const { clock } = context;
  const telemetry = prometheusTelemetry({
    service: 'embedded',
    level: settings.logLevel === 'info' ? 'warn' : settings.logLevel,
    destination: process.stderr,
  });
  const catalogue = readCatalogue(packaged('', 'models', 'catalogue'));
  const arrivals = arrivalsOf(run);
  const startedMs = clock.monotonicMs();
  const starting = startEmbedded(settings, { telemetry, random: run.random, clock });
  const pipeline = await waitingFor(context, 'starting the pipeline', starting);
  try {
    await waitingFor(context, 'waiting for every stage', allReady(pipeline));
    const health = await serveHealth(settings.http, telemetry, () => pipeline.stages);
    try {
      const running = { pipeline, health, catalogue, arrivals, startedMs };
      return await Promise.race([driveAndShow(context, run, running), pipeline.failed]);
    } finally {
      await health.close();
    }
  } finally {
    await pipeline.close();
  }
}

async function allReady(pipeline: EmbeddedPipeline): Promise<void> {
  const reason = await whenReady(pipeline.stages, pipeline.clock, READY_MS);
  if (reason !== undefined)
    throw new MillraceError('STACK_UNAVAILABLE', `the pipeline did not get ready: ${reason}`);
}

interface Running {
  pipeline: EmbeddedPipeline;
  health: HealthServer;
  catalogue: Catalogue;
  arrivals: Iterator<Arrival>;
  startedMs: number;
}

async function driveAndShow(context: CliContext, run: EmbeddedRun, running: Running): Promise<number> {
  const { clock, stdout } = context;
  const { pipeline, catalogue } = running;
  const connection = await pipeline.connect();
  await waitingFor(context, 'warming up', warmUp(connection, catalogue, run));
  context.stderr.write(UNSIGNED);
  const recent = new RecentResults(catalogue, clock);
  const ledger = await openOutsideLedger(connection, { onResult: (result) => recent.take(result) });
  const observer = await PipelineObserver.open(connection);
  const screen = new Screen(stdout);
  const color = wantsColor(stdout, context.environment);
  const state = (ended = false): LiveState => ({
    elapsedMs: clock.monotonicMs() - running.startedMs,
    ledger: ledger.summary(),
    ratePerSecond: recent.ratePerSecond(),
    view: observer.view(),
    policy: pipeline.policyName,
    sample: recent.sample(),
    url: running.health.url,
    ended,
  });
  const isLive = screen.live && !run.json;
  const stopDrawing = isLive
    ? clock.every(DRAW_MS, () => screen.draw(renderLiveTable(state(), color)))
    : () => undefined;
  const sender = await openSender(connection);
  let sent = 0;
  const progress = isLive
    ? undefined
    : new Progress(context.stderr, clock, {
        done: () => sent,
        line: () => `sent ${sent}, results ${resultCount(ledger.summary())}`,
      });
  const driven = await drive({
    arrivals: running.arrivals,
    maker: createRequestMaker(
      catalogue,
      run.random.stream('requests'),
      run.deadlineMs === undefined ? {} : { deadlineMs: run.deadlineMs },
    ),
    clock,
    idPrefix: `embedded-${run.random.seed}-`,
    send(request) {
      sent += 1;
      return sender(request);
    },
    requestsMax: Number.POSITIVE_INFINITY,
    durationMs: run.durationMs,
    signal: context.interruption(),
  });
  const drained = await ledger.drained(DRAIN_MS, driven.sent - driven.refused);
  stopDrawing();
  progress?.end();
  const summary = ledger.summary();
  const balanced = drained && summary.balanced;
  if (isLive) screen.draw(renderLiveTable(state(true), color));
  else if (!run.json) stdout.write(`${renderLiveTable(state(true), color).join('\n')}\n`);
  await observer.close();
  await ledger.close();
  await connection.close();
  const report = {
    ...summary,
    balanced,
    ...reportOf(run, driven),
    elapsedMs: Math.round(clock.monotonicMs() - running.startedMs),
  };
  stdout.write(run.json ? `${JSON.stringify(report)}\n` : `\nledger ${JSON.stringify(report)}\n`);
  return balanced ? 0 : 1;
}

/** Code that never ran is slow: the first requests would expire for no reason that a real installation has. They are not in the books. */
async function warmUp(connection: Connection, catalogue: Catalogue, { random }: EmbeddedRun): Promise<void> {
  let unknown: string | undefined;
  const ledger = await openOutsideLedger(connection, {
    onResult: ({ reason }) => {
      if (reason?.code === 'UNKNOWN_MODEL') unknown = reason.message;
    },
  });
  const driven = await drive({
    arrivals: generatedArrivals(WARM_UP, random.stream('warm-up.arrivals')),
    maker: createRequestMaker(catalogue, random.stream('warm-up.requests'), { deadlineMs: DRAIN_MS }),
    clock: connection.clock,
    idPrefix: 'warm-up-',
    send: await openSender(connection),
    requestsMax: WARM_UP_REQUESTS,
    durationMs: Number.POSITIVE_INFINITY,
  });
  await ledger.drained(DRAIN_MS, driven.sent - driven.refused);
  await ledger.close();
  if (unknown !== undefined)
    throw new MillraceError(
      'INVALID_CONFIG',
      `the traffic that is generated here is of the family ranker: ${unknown}`,
      {
        advice:
          'Copy the folder of ranker beside your models, or score a request of your own: millrace score <file>',
      },
    );
}

function resultCount({ ingress, inFlight }: LedgerSummary): number {
  return ingress - inFlight;
}

function reportOf(run: EmbeddedRun, driven: Driven): object {
  return {
    seed: run.random.seed,
    ratePerSecond: run.ratePerSecond,
    sent: driven.sent,
    refused: driven.refused,
    behindMsMax: Math.round(driven.behindMsMax),
  };
}

function arrivalsOf(run: EmbeddedRun): Iterator<Arrival> {
  if (run.trace !== undefined)
    return traceArrivals(parseTraceInferenceCsv(readUserFile(run.trace).toString('utf8')), run.ratePerSecond);
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

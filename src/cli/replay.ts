import { randomUUID } from 'node:crypto';
import { Command, Option } from 'commander';
import type { Connection } from '../client/connection.ts';
import { loadSettings } from '../config/load-settings.ts';
import { packaged } from '../config/package-root.ts';
import { readUserFile } from '../config/user-file.ts';
import type { LedgerSummary } from '../core/outcome/ledger.ts';
import { seededRandom } from '../core/random/seeded-random.ts';
import { readCatalogue } from '../traffic/catalogue.ts';
import { type Driven, drive } from '../traffic/drive.ts';
import { type OutsideLedger, openOutsideLedger } from '../traffic/outside-ledger.ts';
import { createRequestMaker } from '../traffic/request-maker.ts';
import { openSender } from '../traffic/send-requests.ts';
import {
  DEFAULT_TRACE_MAPPING,
  parseTraceInferenceCsv,
  type TraceRow,
  traceArrivals,
} from '../traffic/trace-inference-csv.ts';
import type { CliContext } from './context.ts';
import { count, duration, durationOrNone, positiveNumber, seed } from './flags.ts';
import { openingConnection } from './opening.ts';
import { Progress } from './progress.ts';
import { requireKafka } from './require-kafka.ts';
import { waitingFor } from './waiting.ts';

interface ReplayFlags {
  rate: number;
  requests: number;
  seed: number;
  deadline?: number;
  tokensPerCandidate: number;
  drain: number;
  json: boolean;
}

/** After an interruption: whoever pressed Ctrl-C wants the end, with the results that are on their way. */
const INTERRUPTED_MS = 300;

export function replayCommand(context: CliContext): Command {
  return new Command('replay')
    .description(
      'Replay a trace of inference requests against a running pipeline, and keep the books as an outside consumer',
    )
    .argument(
      '[trace]',
      'CSV of time stamp, context tokens, generated tokens (default: the packaged Azure sample)',
    )
    .option(
      '--rate <requests>',
      'mean rate in requests per second; the trace’s bursts are kept',
      positiveNumber,
      100,
    )
    .option('--requests <n>', 'how many requests; the trace is looped', count, 1_000)
    .option('--seed <n>', 'seed of users and candidates', seed, 1)
    .option('--deadline <time>', 'deadline of each request (default: the SLA of the model family)', duration)
    .option(
      '--tokens-per-candidate <n>',
      'context tokens that become one candidate',
      positiveNumber,
      DEFAULT_TRACE_MAPPING.tokensPerCandidate,
    )
    .addOption(
      new Option('--drain <time>', 'how long to wait for results after the last request')
        .argParser(durationOrNone)
        .default(60_000, '60s'),
    )
    .option('--json', 'print the ledger as one line of JSON; progress goes to standard error', false)
    .addHelpText(
      'after',
      `
Needs a running installation (MILLRACE_KAFKA_BROKERS, MILLRACE_REGISTRY_URL). The ledger counts what every reader of
scored-results would see; exit code 0 when it balances: every request that was sent has exactly one outcome. Ctrl-C ends it at once, with
the ledger so far.

Example:
  millrace replay --requests 5000 --rate 200`,
    )
    .action(async (trace: string | undefined, flags: ReplayFlags) => {
      const file = trace ?? packaged('', 'examples', 'traces', 'azure-llm-inference-code.csv');
      context.exitCode = await replay(context, file, flags);
    });
}

async function replay(context: CliContext, trace: string, flags: ReplayFlags): Promise<number> {
  const { settings } = loadSettings(context.environment);
  requireKafka(settings);
  const rows = parseTraceInferenceCsv(readUserFile(trace).toString('utf8'));
  const connection = await openingConnection(context, context.transport(settings));
  try {
    return await replayOver(context, connection, rows, flags);
  } finally {
    await connection.close();
  }
}

async function replayOver(
  context: CliContext,
  connection: Connection,
  rows: readonly TraceRow[],
  flags: ReplayFlags,
): Promise<number> {
  const stop = context.interruption();
  const ledger = await openOutsideLedger(connection);
  const driven = await driveTrace(context, { connection, ledger, rows, flags, stop });
  const ingress = driven.sent - driven.refused;
  const drained = await waitingFor(
    context,
    () => `waiting for the last results: ${resultsOf(ledger.summary())} of ${ingress}`,
    stop.aborted ? ledger.drained(INTERRUPTED_MS, ingress) : ledger.drained(flags.drain, ingress, stop),
  );
  const summary = ledger.summary();
  const balanced = drained && summary.balanced;
  const report = {
    ...summary,
    balanced,
    sent: driven.sent,
    refused: driven.refused,
    behindMsMax: Math.round(driven.behindMsMax),
    seed: flags.seed,
    ratePerSecond: flags.rate,
  };
  context.stdout.write(`${JSON.stringify(report, null, flags.json ? 0 : 2)}\n`);
  const missing = missingResults(summary, ingress, stop.aborted ? undefined : flags.drain);
  if (missing !== undefined) context.stderr.write(`millrace: ${missing}\n`);
  await ledger.close();
  return balanced ? 0 : 1;
}

function resultsOf({ ingress, inFlight }: LedgerSummary): number {
  return ingress - inFlight;
}

/** What the books leave open, in words; undefined where every request has a result. `waitedMs` is undefined after an interruption. */
function missingResults(
  summary: LedgerSummary,
  sent: number,
  waitedMs: number | undefined,
): string | undefined {
  const results = resultsOf(summary);
  const missing = summary.inFlight + Math.max(0, sent - summary.ingress);
  if (missing === 0) return undefined;
  const when =
    waitedMs === undefined ? 'before the interruption' : `within ${waitedMs} ms of the last request`;
  if (results === 0)
    return `no result came ${when}, for none of ${sent} requests. Is the pipeline running? A longer --drain waits on`;
  return `${missing} of ${sent} requests got no result ${when}. A longer --drain waits on`;
}

interface Driving {
  connection: Connection;
  ledger: OutsideLedger;
  rows: readonly TraceRow[];
  flags: ReplayFlags;
  stop: AbortSignal;
}

async function driveTrace(
  context: CliContext,
  { connection, ledger, rows, flags, stop }: Driving,
): Promise<Driven> {
  const random = seededRandom(flags.seed);
  const { tokensPerCandidate } = flags;
  const sender = await openSender(connection);
  let sent = 0;
  const progress = new Progress(context.stderr, connection.clock, {
    total: flags.requests,
    done: () => sent,
    line: () => `sent ${sent} of ${flags.requests}, results ${resultsOf(ledger.summary())}`,
  });
  return drive({
    arrivals: traceArrivals(rows, flags.rate, { ...DEFAULT_TRACE_MAPPING, tokensPerCandidate }),
    maker: createRequestMaker(
      readCatalogue(packaged('', 'models', 'catalogue')),
      random.stream('requests'),
      flags.deadline === undefined ? {} : { deadlineMs: flags.deadline },
    ),
    clock: connection.clock,
    idPrefix: `replay-${randomUUID().slice(0, 8)}-`,
    send(request) {
      sent += 1;
      return sender(request);
    },
    requestsMax: flags.requests,
    durationMs: Number.POSITIVE_INFINITY,
    signal: stop,
  }).finally(() => progress.end());
}

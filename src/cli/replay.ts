import { randomUUID } from 'node:crypto';
import { Command, Option } from 'commander';
import type { Connection } from '../client/connection.ts';
import { loadSettings } from '../config/load-settings.ts';
import { packaged } from '../config/package-root.ts';
import { readUserFile } from '../config/user-file.ts';
import { seededRandom } from '../core/random/seeded-random.ts';
import { readCatalogue } from '../traffic/catalogue.ts';
import { type Driven, drive } from '../traffic/drive.ts';
import { openOutsideLedger } from '../traffic/outside-ledger.ts';
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
    .option('--json', 'print the ledger as JSON, and nothing else', false)
    .addHelpText(
      'after',
      `
Needs a running installation (MILLRACE_KAFKA_BROKERS, MILLRACE_REGISTRY_URL). The ledger counts what every reader of
scored-results would see; exit code 0 when it balances and nothing is left in flight.

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
  const opening = context.transport(settings).open();
  const connection = await waitingFor(context, 'connecting to the installation', opening);
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
  const ledger = await openOutsideLedger(connection);
  const progress = new Progress(
    context.stderr,
    flags.json ? 0 : flags.requests,
    connection.clock,
    () => ledger.summary().ingress,
  );
  const driven = await driveTrace(context, connection, rows, flags).finally(() => progress.end());
  const drained = await waitingFor(
    context,
    'waiting for the last results',
    ledger.drained(flags.drain, driven.sent - driven.refused),
  );
  const summary = ledger.summary();
  await ledger.close();
  const report = {
    ...summary,
    sent: driven.sent,
    refused: driven.refused,
    behindMsMax: Math.round(driven.behindMsMax),
    seed: flags.seed,
    ratePerSecond: flags.rate,
  };
  context.stdout.write(`${JSON.stringify(report, null, flags.json ? 0 : 2)}\n`);
  return drained && summary.balanced ? 0 : 1;
}

async function driveTrace(
  context: CliContext,
  connection: Connection,
  rows: readonly TraceRow[],
  flags: ReplayFlags,
): Promise<Driven> {
  const random = seededRandom(flags.seed);
  const { tokensPerCandidate } = flags;
  return drive({
    arrivals: traceArrivals(rows, flags.rate, { ...DEFAULT_TRACE_MAPPING, tokensPerCandidate }),
    maker: createRequestMaker(
      readCatalogue(packaged('', 'models', 'catalogue')),
      random.stream('requests'),
      flags.deadline === undefined ? {} : { deadlineMs: flags.deadline },
    ),
    clock: connection.clock,
    idPrefix: `replay-${randomUUID().slice(0, 8)}-`,
    send: await openSender(connection),
    requestsMax: flags.requests,
    durationMs: Number.POSITIVE_INFINITY,
    signal: context.interruption(),
  });
}

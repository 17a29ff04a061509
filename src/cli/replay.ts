import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { prometheusTelemetry } from '../adapters/prometheus/telemetry.ts';
import { loadSettings } from '../config/load-settings.ts';
import { packaged } from '../config/package-root.ts';
import { seededRandom } from '../core/random/seeded-random.ts';
import { readCatalogue } from '../traffic/catalogue.ts';
import { drive } from '../traffic/drive.ts';
import { openOutsideLedger } from '../traffic/outside-ledger.ts';
import { createRequestMaker } from '../traffic/request-maker.ts';
import { openSender } from '../traffic/send-requests.ts';
import {
  DEFAULT_TRACE_MAPPING,
  parseTraceInferenceCsv,
  traceArrivals,
} from '../traffic/trace-inference-csv.ts';
import { kafkaTransport } from '../wiring/runtime.ts';
import { parseDuration } from './duration.ts';
import { Progress } from './progress.ts';

interface ReplayFlags {
  rate: number;
  requests: number;
  seed: number;
  deadline?: string;
  tokensPerCandidate: number;
  drain: string;
  json: boolean;
}

export function replayCommand(): Command {
  return new Command('replay')
    .description(
      'Replay a trace of inference requests against a running pipeline, and keep the books as an outside consumer',
    )
    .argument(
      '[trace]',
      'CSV of time stamp, context tokens, generated tokens (default: the packaged Azure sample)',
    )
    .option('--rate <requests>', 'mean rate in requests per second; the trace’s bursts are kept', Number, 100)
    .option('--requests <n>', 'how many requests; the trace is looped', Number, 1_000)
    .option('--seed <n>', 'seed of users and candidates', Number, 1)
    .option('--deadline <time>', 'deadline of each request (default: the SLA of the model family)')
    .option(
      '--tokens-per-candidate <n>',
      'context tokens that become one candidate',
      Number,
      DEFAULT_TRACE_MAPPING.tokensPerCandidate,
    )
    .option('--drain <time>', 'how long to wait for results after the last request', '60s')
    .option('--json', 'print the ledger as JSON, and nothing else', false)
    .addHelpText(
      'after',
      '\nExample:\n  millrace replay --requests 5000 --rate 200\n\nThe ledger counts what every reader of scored-results would see; exit code 0 when it balances and nothing is left in flight.',
    )
    .action(async (trace: string | undefined, flags: ReplayFlags) => {
      process.exitCode = await replay(
        trace ?? packaged('', 'examples', 'traces', 'azure-llm-inference-code.csv'),
        flags,
      );
    });
}

async function replay(trace: string, flags: ReplayFlags): Promise<number> {
  const { settings } = loadSettings(process.env);
  const telemetry = prometheusTelemetry({ service: 'replay', level: 'warn', destination: process.stderr });
  const rows = parseTraceInferenceCsv(readFileSync(trace, 'utf8'));
  const random = seededRandom(flags.seed);
  const connection = await kafkaTransport(settings, telemetry).open();
  const ledger = await openOutsideLedger(connection);
  const progress = new Progress(
    process.stderr,
    flags.json ? 0 : flags.requests,
    connection.clock,
    () => ledger.summary().ingress,
  );
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  const driven = await drive({
    arrivals: traceArrivals(rows, flags.rate, {
      ...DEFAULT_TRACE_MAPPING,
      tokensPerCandidate: flags.tokensPerCandidate,
    }),
    maker: createRequestMaker(
      readCatalogue(packaged('', 'models', 'catalogue')),
      random.stream('requests'),
      flags.deadline === undefined ? {} : { deadlineMs: parseDuration(flags.deadline) },
    ),
    clock: connection.clock,
    idPrefix: `replay-${randomUUID().slice(0, 8)}-`,
    send: await openSender(connection),
    requestsMax: flags.requests,
    durationMs: Number.POSITIVE_INFINITY,
    signal: stop.signal,
  });
  const drained = await ledger.drained(parseDuration(flags.drain));
  progress.end();
  const summary = ledger.summary();
  await ledger.close();
  await connection.close();
  const report = {
    ...summary,
    sent: driven.sent,
    refused: driven.refused,
    behindMsMax: Math.round(driven.behindMsMax),
    seed: flags.seed,
    ratePerSecond: flags.rate,
  };
  process.stdout.write(flags.json ? `${JSON.stringify(report)}\n` : `${JSON.stringify(report, null, 2)}\n`);
  return drained && summary.balanced ? 0 : 1;
}

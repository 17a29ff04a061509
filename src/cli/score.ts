import { existsSync } from 'node:fs';
import { Command, Option } from 'commander';
import { connect, type RequestInput } from '../client/client.ts';
import { loadSettings } from '../config/load-settings.ts';
import { packaged } from '../config/package-root.ts';
import type { Settings } from '../config/settings.ts';
import type { ScoredResult } from '../contracts/records.ts';
import { MillraceError } from '../core/errors.ts';
import { readCatalogue } from '../traffic/catalogue.ts';
import { absentInputs } from '../wiring/absent-inputs.ts';
import type { CliContext } from './context.ts';
import { count, duration } from './flags.ts';
import { readRequestFile } from './request-file.ts';
import { scoreLines } from './score-lines.ts';
import { wantsColor } from './screen.ts';
import { shownResult, type Titles } from './shown-result.ts';
import { waitingFor } from './waiting.ts';

interface ScoreFlags {
  explain: boolean;
  top: number;
  deadline?: number;
  timeout: number;
  json: boolean;
}

/** `millrace score <file>`: one request through the whole pipeline. */
export function scoreCommand(context: CliContext): Command {
  return new Command('score')
    .description('Score the request of a file, and show what came of it')
    .argument('<file>', 'JSON, such as examples/requests/ranker.json')
    .option('--explain', 'show how the policy decided', false)
    .option('--top <n>', 'how many of the best candidates to show', count, 10)
    .option('--deadline <time>', 'deadline, instead of that of the file', duration)
    .addOption(
      new Option('--timeout <time>', 'how long to wait for the result')
        .argParser(duration)
        .default(30_000, '30s'),
    )
    .option('--json', 'print the result as one JSON object', false)
    .addHelpText(
      'after',
      `
With MILLRACE_KAFKA_BROKERS set the request goes to that installation; without, a whole pipeline is started in this process,
scores it with the packaged model, and ends; what its family takes and the request leaves out (a history) is then noted. Titles come from the synthetic catalogue that this model was trained on.
Exit code: 0 for a request that was scored (or degraded), 2 where it was refused for what it is, 1 for any other end.

Examples:
  millrace score examples/requests/ranker.json
  millrace score examples/requests/ranker.json --explain --top 3
  millrace score examples/requests/ranker.json --json | jq .candidates[0]`,
    )
    .action((file: string, flags: ScoreFlags) => score(context, file, flags));
}

async function score(context: CliContext, file: string, flags: ScoreFlags): Promise<void> {
  const { settings } = loadSettings(context.environment);
  const request = withFlags(readRequestFile(file), flags);
  const isEmbedded = settings.kafka.brokers.length === 0;
  const transport = isEmbedded ? 'embedded' : 'kafka';
  const client = await waitingFor(
    context,
    isEmbedded ? 'starting the embedded pipeline' : 'connecting to the installation',
    connect({ transport: context.transport(settings) }),
  );
  try {
    const result = await waitingFor(
      context,
      'waiting for the result',
      resultInTime(context, client, request, flags),
    );
    const shown = shownResult(result, titlesFor(settings, result));
    // The model folder at hand is that of the pipeline in this process; an installation may have others.
    const absent = isEmbedded && isAnswer(result) ? await absentInputs(request, settings) : undefined;
    const text = flags.json
      ? JSON.stringify({ transport, ...shown, ...(absent && { absentInputs: absent }) })
      : scoreLines(shown, {
          top: flags.top,
          color: wantsColor(context.stdout, context.environment),
          transport,
          absentInputs: absent ?? [],
        }).join('\n');
    context.stdout.write(`${text}\n`);
    context.exitCode = exitCodeOf(result);
  } finally {
    await client.close();
  }
}

function withFlags(request: RequestInput, flags: ScoreFlags): RequestInput {
  return {
    ...request,
    ...(flags.explain ? { explain: true } : {}),
    ...(flags.deadline === undefined ? {} : { deadlineMs: Math.max(1, Math.round(flags.deadline)) }),
  };
}

async function resultInTime(
  context: CliContext,
  client: Awaited<ReturnType<typeof connect>>,
  request: RequestInput,
  { timeout }: ScoreFlags,
): Promise<ScoredResult> {
  const stop = new AbortController();
  const noAnswer = new MillraceError('BUDGET_EXHAUSTED', 'no result came in time', {
    value: `${timeout} ms`,
    advice: 'Is the pipeline running? A longer --timeout waits on',
  });
  const cancel = context.clock.after(timeout, () => stop.abort(noAnswer));
  try {
    const signal = AbortSignal.any([stop.signal, context.interruption()]);
    return await client.score(request, { signal });
  } catch (error) {
    throw stop.signal.aborted ? noAnswer : error;
  } finally {
    cancel();
  }
}

/** The families in models/repository: what they score are items of the synthetic catalogue. */
const TRAINED_ON_CATALOGUE: ReadonlySet<string> = new Set(['ranker', 'dcn', 'two-tower']);

/** A packaged model's candidates have titles, where the catalogue is there (a container goes without). */
function titlesFor(settings: Settings, { model }: ScoredResult): Titles | undefined {
  const folder = packaged('', 'models', 'catalogue');
  if (settings.models !== '' || !TRAINED_ON_CATALOGUE.has(model) || !existsSync(folder)) return undefined;
  const { itemIds, titles } = readCatalogue(folder);
  return new Map(itemIds.map((id, index) => [String(id), titles[index] ?? '']));
}

function isAnswer({ outcome }: ScoredResult): boolean {
  return outcome === 'SCORED' || outcome === 'DEGRADED';
}

function exitCodeOf(result: ScoredResult): number {
  if (isAnswer(result)) return 0;
  return result.outcome === 'REJECTED' && result.reason?.retryable === false ? 2 : 1;
}

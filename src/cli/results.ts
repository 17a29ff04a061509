import { Command } from 'commander';
import { type Client, connect } from '../client/client.ts';
import type { ReceivedResult } from '../client/result-stream.ts';
import { loadSettings } from '../config/load-settings.ts';
import { MillraceError } from '../core/errors.ts';
import type { CliContext } from './context.ts';
import { count, duration } from './flags.ts';
import { opening } from './opening.ts';
import { requireKafka } from './require-kafka.ts';
import { wantsColor } from './screen.ts';
import { milliseconds, outcomeText, servedBy, shownResult } from './shown-result.ts';
import { waitingFor } from './waiting.ts';

interface ResultsFlags {
  group?: string;
  fromBeginning: boolean;
  max?: number;
  timeout?: number;
  json: boolean;
}

/** `millrace results`: what comes on scored-results, the first result per request only. */
export function resultsCommand(context: CliContext): Command {
  return new Command('results')
    .description('Print results as they come, the first per request only')
    .option(
      '--group <name>',
      'consumer group: it goes on where it stopped, and shares the results among its members',
    )
    .option(
      '--from-beginning',
      'start with the oldest result that is kept, where the group has read nothing yet',
      false,
    )
    .option('--max <n>', 'end after so many', count)
    .option('--timeout <time>', 'end when none came for so long', duration)
    .option('--json', 'print one JSON object per line, with every score', false)
    .addHelpText(
      'after',
      `
Needs a running installation: MILLRACE_KAFKA_BROKERS and MILLRACE_REGISTRY_URL. Ends with Ctrl-C, unless told otherwise. Without
--from-beginning only results that come from now on are printed; while there is none, standard error says what is waited for.

Exit code: 0 where a result was printed, or after Ctrl-C; 1 where --timeout was over and none had come; 2 for something that you can correct.

Examples:
  millrace results
  millrace results --from-beginning --max 100 --timeout 10s
  millrace results --group my-frontend --json | jq -r '[.requestId, .candidates[0].id] | @tsv'`,
    )
    .action((flags: ResultsFlags) => results(context, flags));
}

async function results(context: CliContext, flags: ResultsFlags): Promise<void> {
  const { settings } = loadSettings(context.environment);
  requireKafka(settings);
  // Leaving with results unread is what --max is for, and nothing that the bus need warn of.
  const logLevel = settings.logLevel === 'info' ? 'error' : settings.logLevel;
  const transport = context.transport({ ...settings, logLevel });
  const client = await opening(context, 'connecting to the installation', transport, (told) =>
    withinTimeout(context, connect({ transport: told }), flags.timeout),
  );
  try {
    await printResults(context, client, flags);
  } finally {
    await client.close();
  }
}

/** Who will wait for results for so long will not wait longer for an installation that does not answer. */
async function withinTimeout(
  context: CliContext,
  connecting: Promise<Client>,
  timeoutMs: number | undefined,
): Promise<Client> {
  if (timeoutMs === undefined) return connecting;
  let cancel = (): void => undefined;
  const late = new Promise<undefined>((resolve) => {
    cancel = context.clock.after(timeoutMs, () => resolve(undefined));
  });
  const client = await Promise.race([connecting, late]);
  cancel();
  if (client !== undefined) return client;
  connecting.then(
    (tooLate) => tooLate.close(),
    () => undefined, // it failed as well: what was awaited no longer matters
  );
  throw new MillraceError('BUS_UNAVAILABLE', 'no connection came about within --timeout', {
    value: `${timeoutMs} ms`,
    advice: 'See that MILLRACE_KAFKA_BROKERS and MILLRACE_REGISTRY_URL answer, or give it more time',
  });
}

async function printResults(context: CliContext, client: Client, flags: ResultsFlags): Promise<void> {
  const color = wantsColor(context.stdout, context.environment);
  const idle = new IdleTimeout(context, flags.timeout);
  const stream = client.results({
    ...(flags.group === undefined ? {} : { group: flags.group }),
    startAt: flags.fromBeginning ? 'earliest' : 'latest',
    signal: AbortSignal.any([idle.signal, context.interruption()]),
    onUnreadable: ({ partition, offset, code, message }) =>
      context.stderr.write(
        `millrace: the result at ${partition}/${offset} cannot be read: ${code}, ${message}\n`,
      ),
  });
  await waitingFor(context, 'joining the consumer group', stream.ready);
  const openedMs = context.clock.monotonicMs();
  idle.restart();
  let printed = 0;
  const first = await waitingFor(context, waitedFor(flags), stream.next());
  for (let next = first; next.done !== true; next = await stream.next()) {
    context.stdout.write(`${flags.json ? jsonLine(next.value) : textLine(next.value, color)}\n`);
    printed += 1;
    if (printed === flags.max) {
      next.value.acknowledge();
      break;
    }
    idle.restart();
  }
  idle.cancel();
  await stream.return();
  if (idle.signal.aborted && printed === 0) context.exitCode = 1;
  if (printed < (flags.max ?? 1))
    context.stderr.write(`millrace: ${tooFew(flags, printed, context.clock.monotonicMs() - openedMs)}\n`);
}

function waitedFor({ fromBeginning, group }: ResultsFlags): string {
  const which = fromBeginning ? 'results' : 'results that come from now on';
  const member = group === undefined ? '' : `, as a member of the group ${group}`;
  return `waiting for ${which}${member}`;
}

/** Nothing on standard output can mean no traffic, another installation, or a group that others read for. */
function tooFew(flags: ResultsFlags, printed: number, waitedMs: number): string {
  const { max, fromBeginning, group } = flags;
  const many = max === undefined ? 'no result' : `${printed} of ${max} results`;
  const kept = fromBeginning ? 'counted from the oldest that is kept' : 'of those that came since then';
  const came = `${many} in ${(waitedMs / 1_000).toFixed(1)} s, ${kept}`;
  if (printed > 0) return came;
  const advice = [
    ...(fromBeginning ? [] : ['--from-beginning prints those that are there']),
    ...(group === undefined ? [] : [`what the group ${group} has read before does not come again`]),
  ];
  return [`${came}. Is there traffic, and a pipeline that answers it?`, advice.join('; ')]
    .join(' ')
    .trimEnd();
}

/** Aborts when it was not restarted for so long. */
class IdleTimeout {
  readonly #context: CliContext;
  readonly #afterMs: number | undefined;
  readonly #stop = new AbortController();
  cancel: () => void = () => undefined;

  constructor(context: CliContext, afterMs: number | undefined) {
    this.#context = context;
    this.#afterMs = afterMs;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  restart(): void {
    this.cancel();
    if (this.#afterMs !== undefined)
      this.cancel = this.#context.clock.after(this.#afterMs, () => this.#stop.abort());
  }
}

function jsonLine({ result, partition, offset }: ReceivedResult): string {
  return JSON.stringify({ partition, offset, ...shownResult(result) });
}

function textLine({ result, partition, offset }: ReceivedResult, color: boolean): string {
  const { outcome, requestId, candidatesScored, baselineCandidates, policy, target, timings, reason } =
    result;
  const shown = shownResult(result);
  const best = shown.candidates[0];
  return [
    outcomeText(outcome, color, 'DEAD_LETTERED'.length),
    requestId,
    servedBy(result),
    `${candidatesScored} of ${baselineCandidates}`,
    ...(best === undefined ? [] : [`best ${best.id ?? `#${best.index}`} ${best.score.toFixed(4)}`]),
    ...(policy === null ? [] : [`leaf ${policy.leaf}`]),
    ...(target === null ? [] : [`pool ${target.pool}`]),
    ...(reason === null ? [] : [`${reason.code}: ${reason.message}`]),
    milliseconds(timings.totalMs),
    `${partition}/${offset}`,
  ].join('  ');
}

import { Command, Option } from 'commander';
import type { Connection } from '../client/connection.ts';
import { loadSettings } from '../config/load-settings.ts';
import type { PoolStatus, VersionStatus } from '../contracts/records.ts';
import { listNames, MillraceError } from '../core/errors.ts';
import { didYouMean } from '../core/policy/nearest.ts';
import { follow } from '../stages/follow.ts';
import type { CliContext } from './context.ts';
import { count, durationOrNone } from './flags.ts';
import { scopeOfFamily } from './model-history.ts';
import { openingConnection } from './opening.ts';
import { requireKafka } from './require-kafka.ts';
import { tableLines } from './table.ts';
import { waitingFor } from './waiting.ts';

interface StatusFlags {
  modelVersion?: number;
  wait: number;
  json: boolean;
}

/** What one worker says of one version. */
interface Line {
  pool: string;
  worker: string;
  family: string;
  version: string;
  variant: string;
  /** FOLDER: of the model folder; it serves whoever names no version. */
  status: VersionStatus | 'FOLDER' | 'ABSENT';
  digest: string | null;
  reason: string;
}

/** Five heartbeats: every worker that lives has said something by then. */
const LISTEN_MS = 1_000;
const CHECK_MS = 50;

/** `millrace model status [family]`: which workers can run which versions. */
export function modelStatusCommand(context: CliContext): Command {
  return new Command('status')
    .description('Show which workers can run which model versions, and why one cannot')
    .argument('[family]', 'model family (default: all of them)')
    .option('--model-version <n>', 'only this version; exit code 1 unless every worker can run it', count)
    .addOption(
      new Option('--wait <time>', 'wait so long until every worker is READY or FAILED')
        .argParser(durationOrNone)
        .default(0, '0s'),
    )
    .option('--json', 'print one JSON object per line instead of text', false)
    .addHelpText(
      'after',
      `
Heard from the workers' heartbeats, for a second. FOLDER: a version of the worker's model folder, which serves whoever names none. A published one is
LOADING, READY or FAILED with the reason; what it replaces goes on serving. ABSENT: the worker has not heard of it. Needs a running installation
(MILLRACE_KAFKA_BROKERS, MILLRACE_REGISTRY_URL).

Examples:
  millrace model status ranker
  millrace model publish /shared/ranker/3 && millrace model status ranker --model-version 3 --wait 5m
  millrace model status --json | jq 'select(.status == "FAILED")'`,
    )
    .action((family: string | undefined, flags: StatusFlags) => status(context, family, flags));
}

async function status(context: CliContext, family: string | undefined, flags: StatusFlags): Promise<void> {
  const wanted = family === undefined ? undefined : scopeOfFamily(family).replace('model/', '');
  const { settings } = loadSettings(context.environment);
  requireKafka(settings);
  const connection = await openingConnection(context, context.transport(settings));
  try {
    const isOver = (lines: readonly Line[]): boolean => lines.every(isSettled);
    const heard = listen(context, connection, flags.wait, (statuses) =>
      isOver(linesOf(statuses, wanted, flags.modelVersion)),
    );
    const statuses = await waitingFor(context, 'listening to the workers', heard);
    if (wanted !== undefined && flags.modelVersion === undefined) requireFamily(statuses, wanted);
    const lines = linesOf(statuses, wanted, flags.modelVersion);
    if (flags.modelVersion !== undefined && !(lines.length > 0 && lines.every(canRun))) context.exitCode = 1;
    show(context, { statuses, lines }, flags.json);
    noteNewFamilies(context, statuses, lines);
  } finally {
    await connection.close();
  }
}

/** @throws MillraceError INVALID_CONFIG where workers are up and none has a version of the family */
function requireFamily(statuses: readonly PoolStatus[], wanted: string): void {
  const known = new Set(statuses.flatMap(linesOfWorker).map(({ family }) => family));
  if (statuses.length === 0 || known.has(wanted)) return;
  throw new MillraceError('INVALID_CONFIG', 'no worker knows a model family of this name', {
    value: wanted,
    allowed: listNames([...known].sort()),
    ...didYouMean(wanted, known),
  });
}

/** Extractors know a family by their model folder alone. They say nothing of it here; workers say what is in theirs, which is most often the same. */
function noteNewFamilies(context: CliContext, statuses: readonly PoolStatus[], lines: readonly Line[]): void {
  const inFolders = new Set(statuses.flatMap(({ models }) => models.map(({ family }) => family)));
  const published = lines.filter(({ status }) => status !== 'ABSENT').map(({ family }) => family);
  const onlyPublished = new Set(published.filter((family) => !inFolders.has(family)));
  for (const family of onlyPublished)
    context.stderr.write(
      `millrace: note: no worker has a version of ${family} in its model folder. Where the extractors have none in theirs either, requests for it end as UNKNOWN_MODEL: put one there, and restart them\n`,
    );
}

/** The latest heartbeat of each worker: after a second, or once they say what is waited for. */
async function listen(
  context: CliContext,
  connection: Connection,
  waitMs: number,
  isOver: (statuses: readonly PoolStatus[]) => boolean,
): Promise<readonly PoolStatus[]> {
  const { clock } = context;
  const latest = new Map<string, PoolStatus>();
  const stop = context.interruption();
  const reader = await follow(
    connection,
    'pool-status',
    'PoolStatus',
    (heard) => void latest.set(heard.worker, heard),
    { gone: (worker) => void latest.delete(worker) },
  );
  const startedMs = clock.monotonicMs();
  const isDone = (): boolean => {
    const listenedMs = clock.monotonicMs() - startedMs;
    const statuses = [...latest.values()];
    if (stop.aborted || listenedMs >= Math.max(waitMs, LISTEN_MS)) return true;
    return listenedMs >= LISTEN_MS && statuses.length > 0 && isOver(statuses);
  };
  while (!isDone()) await new Promise<void>((resolve) => clock.after(CHECK_MS, resolve));
  await reader.close();
  return [...latest.values()];
}

function linesOf(
  statuses: readonly PoolStatus[],
  family: string | undefined,
  version: number | undefined,
): Line[] {
  const isAsked = (line: Line): boolean =>
    (family === undefined || line.family === family) &&
    (version === undefined || line.version === String(version));
  return statuses
    .flatMap((heard) => {
      const lines = linesOfWorker(heard).filter(isAsked);
      if (lines.length > 0 || family === undefined || version === undefined) return lines;
      const { pool, worker } = heard;
      const absent: Line = {
        ...{ pool, worker, family, version: String(version), variant: '', digest: null, reason: '' },
        status: 'ABSENT',
      };
      return [absent];
    })
    .sort(byName);
}

function linesOfWorker({ pool, worker, models, published }: PoolStatus): Line[] {
  const own = models.map(
    ({ family, version, variant }): Line => ({
      ...{ pool, worker, family, version, variant: variant.toLowerCase(), digest: null, reason: '' },
      status: 'FOLDER',
    }),
  );
  const others = published.map((each): Line => {
    const { family, version, variant, digest, status, reason } = each;
    const known = status === 'READY' ? variant.toLowerCase() : '';
    return { pool, worker, family, version, variant: known, status, digest, reason };
  });
  const isPublished = ({ family, version }: Line): boolean =>
    others.some((other) => other.family === family && other.version === version);
  return [...own.filter((line) => !isPublished(line)), ...others];
}

function byName(a: Line, b: Line): number {
  const key = ({ family, version, pool, worker }: Line): string =>
    [family, version.padStart(10, '0'), pool, worker].join(' ');
  return key(a) < key(b) ? -1 : 1;
}

function isSettled({ status }: Line): boolean {
  return status === 'READY' || status === 'FAILED' || status === 'FOLDER';
}

function canRun({ status }: Line): boolean {
  return status === 'READY' || status === 'FOLDER';
}

function show(
  context: CliContext,
  { statuses, lines }: { statuses: readonly PoolStatus[]; lines: readonly Line[] },
  json: boolean,
): void {
  if (json) {
    for (const line of lines) context.stdout.write(`${JSON.stringify(line)}\n`);
    return;
  }
  if (lines.length === 0) {
    context.stdout.write(
      statuses.length === 0
        ? 'no worker said anything: is the pipeline running, and MILLRACE_PREFIX right?\n'
        : 'no worker said anything of such a version\n',
    );
    return;
  }
  const rows = lines.map(({ family, version, variant, status, pool, worker, reason }) => [
    `${family}@${version}`,
    variant,
    status,
    pool,
    worker,
    reason,
  ]);
  context.stdout.write(
    `${tableLines(['version', 'variant', 'status', 'pool', 'worker', 'reason'], rows).join('\n')}\n`,
  );
}

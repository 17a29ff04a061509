import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { loadSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import { MillraceError } from '../core/errors.ts';
import { fleetPools } from '../core/policy/fleet-pools.ts';
import { applyTopics } from '../wiring/apply-topics.ts';
import { readFleet } from '../wiring/policy-files.ts';
import { registerSchemas } from '../wiring/runtime.ts';
import { type CliContext, cliTelemetry } from './context.ts';
import { count } from './flags.ts';
import { type ServiceName, type ServiceProcess, startServiceProcess } from './service-processes.ts';
import { waitingFor } from './waiting.ts';

interface UpFlags {
  workers: number;
  routers: number;
  extractors: number;
  json: boolean;
}

interface Planned {
  service: ServiceName;
  name: string;
  environment: Record<string, string>;
}

export function upCommand(context: CliContext): Command {
  return new Command('up')
    .description(
      'Run every service as a process of its own, against the Kafka, registry and Redis that the environment names',
    )
    .option('--extractors <n>', 'feature extractors', count, 1)
    .option('--routers <n>', 'request routers', count, 1)
    .option('--workers <n>', 'workers per pool; they share the pool’s slots', count, 1)
    .option('--json', 'one JSON line per process', false)
    .addHelpText(
      'after',
      `
Creates the topics that are missing first. Ends with Ctrl-C: every service drains, commits and leaves.

The controller takes commands (millrace policy publish and so on) that a key of controller.keys signed: MILLRACE_CONTROLLER_KEYS names the
key file, millrace policy keygen makes a pair. Without keys it refuses every command, unless MILLRACE_CONTROLLER_ACCEPT_UNSIGNED=true.

Examples:
  eval "$(millrace stack up)" && millrace up
  millrace up --workers 2 --routers 2
  MILLRACE_CONTROLLER_ACCEPT_UNSIGNED=true millrace up      on a machine of your own, to try rollouts`,
    )
    .action((flags: UpFlags) => up(context, flags));
}

async function up(context: CliContext, flags: UpFlags): Promise<void> {
  const { settings } = loadSettings(context.environment);
  checkWorkers(settings, flags);
  await waitingFor(context, 'creating the topics', createTopics(context, settings));
  // Once, before all services do it at the same time: a registry that has just started is slow.
  let holdUp = '';
  await waitingFor(
    context,
    () => `registering the schemas${holdUp}`,
    registerSchemas(settings, cliTelemetry(settings), context.clock, {
      waitsFor(what) {
        holdUp = `: ${what}`;
      },
    }),
  );
  const logFolder = join(tmpdir(), `millrace-up-${process.pid}`);
  const stop = context.interruption();
  const kills: ServiceProcess['kill'][] = [];
  // Also where a fault ends this process: nobody would know of services that stayed.
  process.once('exit', () => {
    for (const kill of kills) kill('SIGTERM');
  });
  const tell = (line: string): void => void context.stderr.write(`millrace: ${line}\n`);
  const onSpawned = (kill: ServiceProcess['kill']): void => void kills.push(kill);
  const starting = planned(settings, flags).map((plan) =>
    startServiceProcess({ ...plan, logFolder, tell, onSpawned }),
  );
  const processes = await waitingFor(context, 'starting the services', allOrNone(starting));
  for (const running of processes) report(context, running, flags.json, logFolder);
  const warning = unsignedWarning(settings);
  if (warning !== undefined) context.stderr.write(`millrace: ${warning}\n`);
  await endTogether(context, processes, stop);
}

function checkWorkers({ slotsPerPool }: Settings, { workers }: UpFlags): void {
  if (workers <= slotsPerPool) return;
  throw new MillraceError('INVALID_CONFIG', 'there are more workers than slots for them to own', {
    value: workers,
    allowed: `--workers 1 … ${slotsPerPool}`,
    advice: 'MILLRACE_SLOTS_PER_POOL raises the number of slots',
  });
}

async function createTopics(context: CliContext, settings: Settings): Promise<void> {
  const bus = await context.openBus(settings);
  try {
    await applyTopics(settings, bus);
  } finally {
    await bus.close();
  }
}

/** Where one does not start, those that did are ended. */
async function allOrNone(starting: readonly Promise<ServiceProcess>[]): Promise<ServiceProcess[]> {
  const settled = await Promise.allSettled(starting);
  const running = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const failed = settled.find((each) => each.status === 'rejected');
  if (failed === undefined) return running;
  await endAll(running);
  throw failed.reason;
}

function planned(settings: Settings, flags: UpFlags): Planned[] {
  const numbered = (service: ServiceName, many: number): Planned[] =>
    [...Array(many).keys()].map((n) => ({ service, name: `${service}-${n + 1}`, environment: {} }));
  const workers = fleetPools(readFleet(settings)).flatMap(({ pool, simulated }) =>
    [...Array(flags.workers).keys()].map((n): Planned => {
      const slots = [...Array(settings.slotsPerPool).keys()].filter((slot) => slot % flags.workers === n);
      return {
        service: 'accelerator-worker',
        name: `${pool}-${n + 1}`,
        environment: {
          MILLRACE_WORKER_POOL: pool,
          MILLRACE_WORKER_NAME: `${pool}-${n + 1}`,
          MILLRACE_WORKER_SLOTS: slots.join(','),
          ...(simulated ? { MILLRACE_WORKER_BACKEND: 'simulated' } : {}),
        },
      };
    }),
  );
  return [
    ...numbered('policy-controller', 1),
    ...workers,
    ...numbered('request-router', flags.routers),
    ...(settings.topology === 'split' ? numbered('feature-extractor', flags.extractors) : []),
  ];
}

/** What the controller's log says at its start, where a person looks; undefined where commands must be signed, and can be. */
export function unsignedWarning({ controller }: Pick<Settings, 'controller'>): string | undefined {
  if (controller.acceptUnsigned)
    return 'warning: commands need no signature (MILLRACE_CONTROLLER_ACCEPT_UNSIGNED): whoever may write to the control topic decides';
  if (controller.keys !== '') return undefined;
  return [
    'warning: the controller has no keys, and refuses every command: nothing can be published, rolled out or rolled back.',
    '  With keys: millrace policy keygen <your name> prints an entry for a key file; name that file in MILLRACE_CONTROLLER_KEYS',
    '  On a machine of your own: MILLRACE_CONTROLLER_ACCEPT_UNSIGNED=true',
    '  Either takes effect at the next millrace up',
  ].join('\n');
}

function report(context: CliContext, running: ServiceProcess, json: boolean, logFolder: string): void {
  const { name, pid, url } = running;
  const log = join(logFolder, `${name}.log`);
  context.stdout.write(
    json
      ? `${JSON.stringify({ name, pid, url, log })}\n`
      : `ready  ${name.padEnd(24)} pid ${String(pid).padEnd(8)} ${url}  ${log}\n`,
  );
}

/** Until a signal comes, or a service ends by itself: then all are told to drain. */
async function endTogether(
  context: CliContext,
  processes: readonly ServiceProcess[],
  stop: AbortSignal,
): Promise<void> {
  const first = await Promise.race([
    aborted(stop),
    ...processes.map(async (running) => `${running.name} ended with ${await running.ended}`),
  ]);
  if (first !== undefined) {
    context.stderr.write(`millrace: ${first}; ending the others\n`);
    context.exitCode = 1;
  }
  context.stderr.write('millrace: the services drain\n');
  await endAll(processes);
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}

async function endAll(processes: readonly ServiceProcess[]): Promise<void> {
  for (const running of processes) running.kill('SIGTERM');
  await Promise.all(processes.map((running) => running.ended));
}

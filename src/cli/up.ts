import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { silentTelemetry } from '../adapters/memory/telemetry.ts';
import { loadSettings } from '../config/load-settings.ts';
import { applyTopics } from '../wiring/apply-topics.ts';
import { fleetPools, readFleet } from '../wiring/policy-files.ts';
import { openBus } from '../wiring/runtime.ts';
import { type ServiceName, type ServiceProcess, startServiceProcess } from './service-processes.ts';

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

export function upCommand(): Command {
  return new Command('up')
    .description(
      'Run every service as a process of its own, against the Kafka, registry and Redis that the environment names',
    )
    .option('--extractors <n>', 'feature extractors', Number, 1)
    .option('--routers <n>', 'request routers', Number, 1)
    .option('--workers <n>', 'workers per pool; they share the pool’s slots', Number, 1)
    .option('--json', 'one JSON line per process', false)
    .addHelpText('after', '\nExample:\n  eval "$(millrace stack up)" && millrace up')
    .action(async (flags: UpFlags) => {
      const { settings } = loadSettings(process.env);
      const bus = await openBus(settings, 'millrace-up', silentTelemetry());
      await applyTopics(settings, bus);
      await bus.close();
      const logFolder = join(tmpdir(), `millrace-up-${process.pid}`);
      const processes = await Promise.all(
        planned(settings, flags).map((plan) => startServiceProcess({ ...plan, logFolder })),
      );
      for (const running of processes) report(running, flags.json, logFolder);
      await endTogether(processes);
    });
}

function planned(settings: ReturnType<typeof loadSettings>['settings'], flags: UpFlags): Planned[] {
  const numbered = (service: ServiceName, count: number): Planned[] =>
    [...Array(count).keys()].map((n) => ({ service, name: `${service}-${n + 1}`, environment: {} }));
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

function report(running: ServiceProcess, json: boolean, logFolder: string): void {
  const log = join(logFolder, `${running.name}.log`);
  process.stdout.write(
    json
      ? `${JSON.stringify({ name: running.name, pid: running.pid, url: running.url, log })}\n`
      : `ready  ${running.name.padEnd(24)} pid ${String(running.pid).padEnd(8)} ${running.url}  ${log}\n`,
  );
}

/** Until a signal comes, or a service ends by itself: then all are told to drain. */
async function endTogether(processes: readonly ServiceProcess[]): Promise<void> {
  const signalled = new Promise<string>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal));
  });
  const first = await Promise.race([
    signalled,
    ...processes.map(async (running) => `${running.name} ended with ${await running.ended}`),
  ]);
  const bySignal = first === 'SIGINT' || first === 'SIGTERM';
  if (!bySignal) process.stderr.write(`millrace: ${first}; ending the others\n`);
  for (const running of processes) running.kill('SIGTERM');
  await Promise.all(processes.map((running) => running.ended));
  process.exitCode = bySignal ? 0 : 1;
}

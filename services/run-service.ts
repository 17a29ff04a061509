import { prometheusTelemetry } from '../src/adapters/prometheus/telemetry.ts';
import { collectStartUpGarbage, countBuffersInHeapLimit } from '../src/adapters/system/garbage-collection.ts';
import { endOnFault } from '../src/adapters/system/process-faults.ts';
import { logProcessWarnings } from '../src/adapters/system/process-warnings.ts';
import { loadSettings } from '../src/config/load-settings.ts';
import type { Settings } from '../src/config/settings.ts';
import { MillraceError } from '../src/core/errors.ts';
import type { Stage } from '../src/stages/stage.ts';
import { serveHealth } from '../src/wiring/health-server.ts';
import { openRuntime, type Runtime } from '../src/wiring/runtime.ts';

/** How long a process may take to drain after SIGTERM before it gives up and says so. */
const DRAIN_MS = 10_000;

/**
 * One service as a process: settings from the environment, health and metrics over HTTP, stages, and on SIGTERM or SIGINT: unready, drain,
 * commit, leave, within 10 s. A line on standard output says when it is ready; what a person can correct is told in one line, exit code 2.
 */
export async function runService(
  service: string,
  start: (settings: Settings, runtime: Runtime) => Promise<readonly Stage[]>,
): Promise<void> {
  try {
    await run(service, start);
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    process.stderr.write(`${service}: ${error.message}\n`);
    process.exit(error.retryable ? 1 : 2);
  }
}

async function run(
  service: string,
  start: (settings: Settings, runtime: Runtime) => Promise<readonly Stage[]>,
): Promise<void> {
  countBuffersInHeapLimit();
  const { settings } = loadSettings(process.env);
  const stages: Stage[] = [];
  const telemetry = prometheusTelemetry({ service, level: settings.logLevel });
  const { logger } = telemetry;
  logProcessWarnings(process, logger);
  const tell = (line: string): void => void process.stderr.write(`${service}: ${line}\n`);
  endOnFault(process, logger, tell, () => process.exit(1));
  const runtime = await openRuntime(settings, service, telemetry);
  const health = await serveHealth(settings.http, runtime.telemetry, () => stages);
  let stopping = false;
  const stop = async (signal: string): Promise<void> => {
    if (stopping) return;
    stopping = true;
    logger.info({ signal }, 'draining');
    const giveUp = setTimeout(() => {
      logger.error({ drainMs: DRAIN_MS }, 'not drained in time; whatever is left is taken up by others');
      process.exit(1);
    }, DRAIN_MS);
    const running = stages.splice(0);
    await Promise.all(running.map((stage) => stage.close()));
    await runtime.close();
    await health.close();
    clearTimeout(giveUp);
    logger.info({}, 'drained');
    process.exit(0);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal));
  stages.push(...(await start(settings, runtime)));
  collectStartUpGarbage();
  logger.info({ url: health.url, pid: process.pid }, 'ready');
}

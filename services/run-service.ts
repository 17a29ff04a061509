import { type PrometheusTelemetry, prometheusTelemetry } from '../src/adapters/prometheus/telemetry.ts';
import { collectStartUpGarbage, countBuffersInHeapLimit } from '../src/adapters/system/garbage-collection.ts';
import { endOnFault } from '../src/adapters/system/process-faults.ts';
import { logProcessWarnings } from '../src/adapters/system/process-warnings.ts';
import { loadSettings } from '../src/config/load-settings.ts';
import type { Settings } from '../src/config/settings.ts';
import { MillraceError } from '../src/core/errors.ts';
import type { Stage } from '../src/stages/stage.ts';
import { serveHealth } from '../src/wiring/health-server.ts';
import { openRuntime, type Runtime } from '../src/wiring/runtime.ts';

/** How long whoever reads the log may take with the last lines. */
const LOG_MS = 1_000;
/** How long a process may take to drain after SIGTERM before it gives up and says so. */
const DRAIN_MS = 10_000;

/** @param end ends the process, once its log is written */
type StartStages = (
  settings: Settings,
  runtime: Runtime,
  end: (code: number) => void,
) => Promise<readonly Stage[]>;

/**
 * One service as a process: settings from the environment, health and metrics over HTTP, stages, and on SIGTERM or SIGINT: unready, drain,
 * commit, leave, within 10 s. A line on standard output says when it is ready; what a person can correct is told in one line, exit code 2.
 */
export async function runService(service: string, start: StartStages): Promise<void> {
  let end = (code: number): void => process.exit(code);
  try {
    const { settings } = loadSettings(process.env);
    const telemetry = prometheusTelemetry({ service, level: settings.logLevel });
    end = ending(telemetry);
    await run(service, { settings, telemetry, end }, start);
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    process.stderr.write(`${service}: ${error.message}\n`);
    end(error.retryable ? 1 : 2);
  }
}

interface ServiceProcess {
  settings: Settings;
  telemetry: PrometheusTelemetry;
  end(code: number): void;
}

async function run(
  service: string,
  { settings, telemetry, end }: ServiceProcess,
  start: StartStages,
): Promise<void> {
  countBuffersInHeapLimit();
  const stages: Stage[] = [];
  const { logger } = telemetry;
  logProcessWarnings(process, logger);
  // Where its disk is full or its pipe closed, what it would have said is lost; the process is none the worse for it.
  process.stderr.on('error', () => undefined);
  const tell = (line: string): void => void process.stderr.write(`${service}: ${line}\n`);
  endOnFault(process, logger, tell, () => end(1));
  const runtime = await openRuntime(settings, service, telemetry);
  const health = await serveHealth(settings.http, runtime.telemetry, () => stages);
  let stopping = false;
  const stop = async (signal: string): Promise<void> => {
    if (stopping) return;
    stopping = true;
    logger.info({ signal }, 'draining');
    const giveUp = setTimeout(() => {
      logger.error({ drainMs: DRAIN_MS }, 'not drained in time; whatever is left is taken up by others');
      end(1);
    }, DRAIN_MS);
    const running = stages.splice(0);
    await Promise.all(running.map((stage) => stage.close()));
    await runtime.close();
    await health.close();
    clearTimeout(giveUp);
    logger.info({}, 'drained');
    end(0);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal));
  try {
    stages.push(...(await start(settings, runtime, end)));
  } catch (error) {
    // A start that a signal interrupted fails for want of what was closed: nothing that a person could correct.
    if (stopping) return;
    throw error;
  }
  if (stopping) return;
  collectStartUpGarbage();
  logger.info({ url: health.url, pid: process.pid }, 'ready');
}

/**
 * Ends the process once its log is written. Where nobody reads the log's pipe the exit itself would wait for a reader, and for ever: then the process kills
 * itself, and its exit code is that of SIGKILL.
 */
function ending({ logWritten }: Pick<PrometheusTelemetry, 'logWritten'>): (code: number) => void {
  let isEnding = false;
  return (code) => {
    if (isEnding) return;
    isEnding = true;
    void logWritten(LOG_MS).then((isWritten) => {
      if (isWritten) process.exit(code);
      process.kill(process.pid, 'SIGKILL');
    });
  };
}

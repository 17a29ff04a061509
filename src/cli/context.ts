import { randomUUID } from 'node:crypto';
import { prometheusTelemetry } from '../adapters/prometheus/telemetry.ts';
import { systemClock } from '../adapters/system/clock.ts';
import { systemRandom } from '../adapters/system/random.ts';
import type { Transport } from '../client/connection.ts';
import type { Environment } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import type { Clock } from '../ports/clock.ts';
import type { MessageBus } from '../ports/message-bus.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { embeddedTransport } from '../wiring/embedded-transport.ts';
import { kafkaTransport, openBus } from '../wiring/runtime.ts';

/** A terminal, a pipe or a file. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  /** Width of a terminal. */
  readonly columns?: number | undefined;
}

/** What commands reach of the world around them; tests hand in their own. */
export interface CliContext {
  readonly environment: Environment;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly clock: Clock;
  /** The exit code unless an error says otherwise. */
  exitCode: number;
  /** The bus of the installation that the settings name. @throws MillraceError INVALID_CONFIG where they name none */
  openBus(settings: Settings): Promise<MessageBus>;
  /** The installation that the settings name; where they name none, a pipeline in this process. */
  transport(settings: Settings): Transport;
  /** Aborts on the first SIGINT or SIGTERM; a second one ends the process. */
  interruption(): AbortSignal;
}

export function processContext(): CliContext {
  return {
    environment: process.env,
    stdout: process.stdout,
    stderr: process.stderr,
    clock: systemClock(),
    exitCode: 0,
    openBus: (settings) => openBus(settings, `cli-${randomUUID().slice(0, 8)}`, cliTelemetry(settings)),
    transport: (settings) =>
      settings.kafka.brokers.length > 0
        ? kafkaTransport(settings, cliTelemetry(settings))
        : embeddedTransport(settings, { telemetry: cliTelemetry(settings), random: systemRandom() }),
    interruption,
  };
}

/** A person reads standard error: below warnings only what was asked for. */
export function cliTelemetry({ logLevel }: Pick<Settings, 'logLevel'>): Telemetry {
  return prometheusTelemetry({
    service: 'cli',
    level: logLevel === 'info' ? 'warn' : logLevel,
    destination: process.stderr,
  });
}

function interruption(): AbortSignal {
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  return stop.signal;
}

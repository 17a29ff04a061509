import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { systemClock } from '../../../src/adapters/system/clock.ts';
import type { CliContext, Output } from '../../../src/cli/context.ts';
import { runCommand } from '../../../src/cli/run-cli.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import { embeddedTransport } from '../../../src/wiring/embedded-transport.ts';

/** What a command printed, and how it ended. */
export interface Ran {
  out: string;
  err: string;
  exitCode: number;
}

export class CapturedOutput implements Output {
  text = '';
  readonly isTTY: boolean;
  readonly columns: number | undefined;

  constructor(isTTY = false, columns?: number) {
    this.isTTY = isTTY;
    this.columns = columns;
  }

  write(text: string): void {
    this.text += text;
  }
}

/** The environment of an embedded pipeline that starts quickly: one pool, scores at once. */
export const QUICK_PIPELINE = {
  MILLRACE_FLEET: 'examples/fleets/one-pool.yaml',
  MILLRACE_POLICY: 'examples/policies/one-pool.yaml',
  MILLRACE_WORKER_BACKEND: 'immediate',
};

/** Settings that name an installation; what stands for it is in the context. */
export const INSTALLATION = {
  MILLRACE_KAFKA_BROKERS: '127.0.0.1:1',
  MILLRACE_KAFKA_PARTITIONS: '4',
  MILLRACE_FLEET: 'examples/fleets/one-pool.yaml',
};

/** What commands say of their waiting, and only where the machine is slow; not that of `results`, which says at once what it waits for. */
const WAITING = /^millrace: (?!waiting for results)[^\n]* …( \d+ s)?\n/gm;

/** Runs `millrace <args>` in this process, with an embedded pipeline where no other transport is given. */
export async function millrace(
  args: readonly string[],
  given: Partial<Omit<CliContext, 'exitCode' | 'stdout' | 'stderr'>> & {
    color?: boolean;
    columns?: number;
  } = {},
): Promise<Ran> {
  const { color = false, columns, ...rest } = given;
  const stdout = new CapturedOutput(color || columns !== undefined, columns);
  const stderr = new CapturedOutput();
  const context: CliContext = {
    environment: {},
    clock: systemClock(),
    openBus: () => Promise.reject(new Error('this test has no bus')),
    transport: (settings) =>
      embeddedTransport(settings, { telemetry: silentTelemetry(), random: seededRandom(1) }),
    interruption: () => new AbortController().signal,
    ...rest,
    stdout,
    stderr,
    exitCode: 0,
  };
  await runCommand(args, context);
  return { out: stdout.text, err: stderr.text.replaceAll(WAITING, ''), exitCode: context.exitCode };
}

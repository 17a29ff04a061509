import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packageRoot } from '../../../../src/config/package-root.ts';

const SOURCES = join(packageRoot(), 'src');

/** A process that sends a record, and listens for faults as a service does. */
const program = (produce: string): string => `
  import { SendQueue } from '${SOURCES}/adapters/kafka/send-queue.ts';
  import { TopicCatalog } from '${SOURCES}/adapters/kafka/topic-catalog.ts';
  import { silentTelemetry } from '${SOURCES}/adapters/memory/telemetry.ts';
  import { endOnFault } from '${SOURCES}/adapters/system/process-faults.ts';
  const { logger } = silentTelemetry();
  endOnFault(process, logger, console.log, () => process.exit(1));
  const client = {
    leaders: async () => new Map([['t', [1]]]),
    send: async (batches) => batches.map(() => ({ status: 'stored', baseOffset: 5 })),
    resetSending: async () => undefined,
  };
  const queue = new SendQueue({ client, catalog: new TopicCatalog(client), logger, onRetry: () => undefined });
  setTimeout(() => process.exit(3), 20_000);
  const record = { topic: 't', partition: 0, key: null, value: Buffer.from('v') };
  await queue.produce(record, ${produce});
  process.exit(0);`;

it.each([
  ['is none', '() => undefined', '', 0],
  [
    'of who waits for an offset ends the process, and no record waits for ever',
    "() => { throw new TypeError('planted') }",
    'ended by a fault of its own: planted\n',
    1,
  ],
])('a fault %s', (_, onStored, told, exitCode) => {
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', program(onStored)], {
    encoding: 'utf8',
    cwd: packageRoot(),
  });
  expect({ stdout, status }).toEqual({ stdout: told, status: exitCode });
});

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brokerProperties } from './broker-properties.ts';
import type { Java } from './java.ts';

const run = promisify(execFile);
const FORMAT_TIMEOUT_MS = 60_000;

/** Kafka's uuids: 16 bytes as 22 characters of base64url, never with a leading dash. */
export function kafkaUuid(): string {
  for (;;) {
    const text = randomBytes(16).toString('base64url');
    if (!text.startsWith('-')) return text;
  }
}

/** Formats `storage` with Kafka's own tool, which takes a second: so it is done once, and copied from then on. */
export async function formatStorage(java: Java, kafkaJars: string, storage: string): Promise<void> {
  const propertiesFile = `${storage}.properties`;
  const node = { nodeId: 1, brokerPort: 1, controllerPort: 2 };
  await writeFile(propertiesFile, brokerProperties({ node, nodes: [node], storage }));
  await run(
    java.command,
    [
      '-XX:TieredStopAtLevel=1',
      '-cp',
      join(kafkaJars, '*'),
      'kafka.tools.StorageTool',
      'format',
      '-t',
      kafkaUuid(),
      '-c',
      propertiesFile,
    ],
    { timeout: FORMAT_TIMEOUT_MS },
  );
  await rm(propertiesFile);
}

/** An empty storage folder for one broker: the formatted one with its own identity. */
export async function copyStorage(
  formatted: string,
  storage: string,
  identity: { clusterId: string; nodeId: number },
): Promise<void> {
  await mkdir(storage, { recursive: true });
  await cp(formatted, storage, { recursive: true });
  const lines = [
    'version=1',
    `cluster.id=${identity.clusterId}`,
    `directory.id=${kafkaUuid()}`,
    `node.id=${identity.nodeId}`,
  ];
  await writeFile(join(storage, 'meta.properties'), `${lines.join('\n')}\n`);
}

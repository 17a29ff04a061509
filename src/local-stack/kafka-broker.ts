import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { portAnswers } from './await-ready.ts';
import { type BrokerNode, brokerProperties } from './broker-properties.ts';
import { type ArchiveMode, jvmArguments } from './jvm-arguments.ts';
import { copyStorage } from './kafka-storage.ts';
import type { Programs } from './programs.ts';
import { createServiceProcess, type Lifetime, type ServiceProcess } from './service-process.ts';

/** Lays out the folder of one new broker and returns its process, not yet started. */
export async function prepareBroker(options: {
  programs: Programs;
  archives: ArchiveMode;
  node: BrokerNode;
  nodes: readonly BrokerNode[];
  clusterId: string;
  folder: string;
  lifetime: Lifetime;
}): Promise<ServiceProcess> {
  const { programs, node, nodes, folder } = options;
  const storage = join(folder, 'storage');
  const propertiesFile = join(folder, 'server.properties');
  await mkdir(folder, { recursive: true });
  await copyStorage(programs.kafkaStorage, storage, { clusterId: options.clusterId, nodeId: node.nodeId });
  await writeFile(propertiesFile, brokerProperties({ node, nodes, storage }));
  return createServiceProcess(
    {
      name: `kafka-${node.nodeId}`,
      command: programs.java.command,
      arguments: [
        '-Xms128m',
        '-Xmx512m',
        ...jvmArguments(options.archives, programs.classArchives, 'kafka'),
        '-cp',
        join(programs.kafkaJars, '*'),
        'kafka.Kafka',
        propertiesFile,
      ],
      workingDirectory: folder,
      logFile: join(folder, 'kafka.log'),
      // A broker opens this port once the controller has registered and unfenced it.
      probe: () => portAnswers(node.brokerPort),
    },
    options.lifetime,
  );
}

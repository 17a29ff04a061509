import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { urlAnswers } from './await-ready.ts';
import { type ArchiveMode, jvmArguments } from './jvm-arguments.ts';
import type { Programs } from './programs.ts';
import { createServiceProcess, type Lifetime, type ServiceProcess } from './service-process.ts';
import { warmRegistry } from './warm-registry.ts';

/** Where the registry speaks Confluent's API. */
export function registryUrl(port: number): string {
  return `http://127.0.0.1:${port}/apis/ccompat/v7`;
}

/** The schema registry, not yet started; its schemas and their ids are in `folder` and survive a restart. */
export async function prepareRegistry(options: {
  programs: Programs;
  archives: ArchiveMode;
  port: number;
  managementPort: number;
  folder: string;
  lifetime: Lifetime;
}): Promise<ServiceProcess> {
  const { programs, folder, port } = options;
  await mkdir(folder, { recursive: true });
  return createServiceProcess(
    {
      name: 'registry',
      command: programs.java.command,
      arguments: [
        '-Xmx384m',
        ...jvmArguments(options.archives, programs.classArchives, 'registry'),
        '-Dquarkus.http.host=127.0.0.1',
        `-Dquarkus.http.port=${port}`,
        // Without these two it also listens on 0.0.0.0:9000, where a second stack collides.
        '-Dquarkus.management.host=127.0.0.1',
        `-Dquarkus.management.port=${options.managementPort}`,
        `-Dapicurio.datasource.url=jdbc:h2:file:${join(folder, 'schemas')}`,
        '-Dapicurio.datasource.jdbc.initial-size=2',
        '-Dapicurio.datasource.jdbc.min-size=2',
        '-jar',
        programs.registryJar,
      ],
      workingDirectory: folder,
      logFile: join(folder, 'registry.log'),
      probe: () => servesClients(registryUrl(port)),
    },
    options.lifetime,
  );
}

/** True once it has done what a client wants of it; that it answers at all comes long before. */
async function servesClients(url: string): Promise<boolean> {
  if (!(await urlAnswers(`${url}/subjects`))) return false;
  return warmRegistry(url).then(
    () => true,
    () => false,
  );
}

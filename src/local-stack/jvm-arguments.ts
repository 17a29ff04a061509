import { join } from 'node:path';

/** Whether a service uses the archive of its classes, or writes one when it is stopped. */
export type ArchiveMode = 'use' | 'create';

/** The services that have one. */
export type Archived = 'kafka' | 'registry';

export function classArchive(folder: string, name: Archived): string {
  return join(folder, `${name}.jsa`);
}

/** What every Java service is started with. A missing archive, or one of another Java, is no error to a JVM. */
export function jvmArguments(archives: ArchiveMode, folder: string, name: Archived): string[] {
  const archive = classArchive(folder, name);
  return [
    '-XX:TieredStopAtLevel=1',
    archives === 'create' ? `-XX:ArchiveClassesAtExit=${archive}` : `-XX:SharedArchiveFile=${archive}`,
  ];
}

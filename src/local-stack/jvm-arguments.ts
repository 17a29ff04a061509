import { join } from 'node:path';

/** Whether a service uses the archive of its classes, or writes one when it is stopped. */
export type ArchiveMode = 'use' | 'create';

/** What every Java service is started with. A missing archive, or one of another Java, is no error to a JVM. */
export function jvmArguments(archives: ArchiveMode, folder: string, name: string): string[] {
  const archive = join(folder, `${name}.jsa`);
  return [
    '-XX:TieredStopAtLevel=1',
    archives === 'create' ? `-XX:ArchiveClassesAtExit=${archive}` : `-XX:SharedArchiveFile=${archive}`,
  ];
}

import { access, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withFileLock } from './file-lock.ts';
import { type Archived, classArchive } from './jvm-arguments.ts';
import type { Programs } from './programs.ts';
import { choosePorts, prepareServices, startServices } from './services.ts';

const ARCHIVED: readonly Archived[] = ['kafka', 'registry'];
const DUMP_TIMEOUT_MS = 180_000;

/**
 * Makes sure that archives of the classes that Kafka and the registry load are there for this Java (class data
 * sharing, JEP 350), which saves 40 % of the CPU time of every start. Runs both once and stops them; about 10 s.
 * Without archives the services start too, only later: so a failure is reported and goes no further.
 */
export async function ensureClassArchives(
  programs: Programs,
  onProgress: (line: string) => void,
): Promise<void> {
  const { classArchives } = programs;
  if (await exists(classArchives)) return;
  await withFileLock(`${classArchives}.lock`, async () => {
    if (await exists(classArchives)) return;
    onProgress('preparing class archives, for quicker starts (once for each Java)');
    await createClassArchives(programs).catch((error: unknown) => {
      onProgress(`class archives could not be made, starts will be slower: ${String(error)}`);
    });
  });
}

async function createClassArchives(programs: Programs): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), `millrace-stack-${process.pid}-`));
  const partial = await mkdtemp(`${programs.classArchives}.partial-`);
  try {
    const services = await prepareServices({
      programs: { ...programs, classArchives: partial },
      archives: 'create',
      dir,
      ports: await choosePorts(1),
      lifetime: 'dies-with-parent',
    });
    await startServices(services, () => undefined);
    await Promise.all(services.all.map((service) => service.stop(DUMP_TIMEOUT_MS)));
    // One that was killed before it had written its archive would leave every later start slow.
    await Promise.all(ARCHIVED.map((name) => access(classArchive(partial, name))));
    await rename(partial, programs.classArchives);
  } finally {
    await rm(partial, { recursive: true, force: true });
    await rm(dir, { recursive: true, force: true });
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

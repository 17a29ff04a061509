import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { urlAnswers } from '../../src/local-stack/await-ready.ts';
import { freePorts } from '../../src/local-stack/free-port.ts';
import { createServiceProcess, type ServiceProcess } from '../../src/local-stack/service-process.ts';
import { toyFiles, writeVersion } from '../unit/inference/toy-model.ts';
import { pythonFlags, pythonWith, type ServerName } from './environments.ts';

/** A server that others wrote, with the toy model and the committed ranker. */
export interface RealServer {
  readonly urls: Readonly<Record<'http' | 'grpc', string>>;
  readonly process: ServiceProcess;
  /** Its models' folder, from which a worker reads config.yaml and the golden cases. */
  readonly models: string;
  close(): Promise<void>;
}

/** @param paths how it names each model, for the question whether it is ready */
export async function startRealServer(server: ServerName, paths: readonly string[]): Promise<RealServer> {
  const python = await pythonWith(server);
  const folder = await mkdtemp(join(tmpdir(), `millrace-${server}-`));
  const models = join(folder, 'models');
  await writeVersion(models, toyFiles());
  await cp('models/repository/ranker/1', join(models, 'ranker/1'), { recursive: true });
  const [http = 0, grpc = 0, metrics = 0] = await freePorts(3);
  const urls = { http: `http://127.0.0.1:${http}`, grpc: `http://127.0.0.1:${grpc}` };
  const process = createServiceProcess(
    {
      name: server,
      command: python,
      arguments: [
        ...pythonFlags(python),
        join(import.meta.dirname, 'servers', `${server}_server.py`),
        `--models=${models}`,
        `--work=${join(folder, 'work')}`,
        `--http-port=${http}`,
        `--grpc-port=${grpc}`,
        `--metrics-port=${metrics}`,
      ],
      workingDirectory: folder,
      logFile: join(folder, 'server.log'),
      probe: async () => {
        const ready = paths.map((path) => urlAnswers(`${urls.http}/v2/models/${path}/ready`));
        return (await Promise.all(ready)).every(Boolean);
      },
    },
    'dies-with-parent',
  );
  const close = async (): Promise<void> => {
    await process.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await process.start();
  } catch (error) {
    await close();
    throw error;
  }
  return { urls, process, models, close };
}

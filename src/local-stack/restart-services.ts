import { MillraceError } from '../core/errors.ts';
import { portAnswers, urlAnswers } from './await-ready.ts';
import { REDIS_PING } from './probe-stack.ts';
import { createServiceProcess, type ServiceLaunch } from './service-process.ts';

export interface ServiceToStart {
  /** kafka-1, registry, redis … */
  name: string;
  launch: ServiceLaunch;
  /** As the stack's environment names it. */
  address: string;
}

export interface Restarted {
  /** Service name to pid, of those that answer again. They outlive this process. */
  pids: ReadonlyMap<string, number>;
  /** Why the others do not. */
  failures: readonly { name: string; error: unknown }[];
}

/** Starts services of a stack again, all at once; what else runs of the stack is not touched. */
export async function restartServices(
  services: readonly ServiceToStart[],
  onProgress: (line: string) => void,
): Promise<Restarted> {
  const pids = new Map<string, number>();
  const failures: { name: string; error: unknown }[] = [];
  await Promise.all(
    services.map(async (service) => {
      try {
        pids.set(service.name, await startAgain(service));
        onProgress(`${service.name} answers again`);
      } catch (error) {
        failures.push({ name: service.name, error });
      }
    }),
  );
  return { pids, failures };
}

async function startAgain({ name, launch, address }: ServiceToStart): Promise<number> {
  const command = { ...launch, name, probe: () => answers(name, address) };
  const started = createServiceProcess(command, 'outlives-parent');
  await started.start();
  const { pid } = started;
  started.release();
  if (pid !== undefined) return pid;
  throw new MillraceError('STACK_UNAVAILABLE', `${name} ended right after it had answered`);
}

function answers(name: string, address: string): Promise<boolean> {
  if (name === 'registry') return urlAnswers(`${address}/subjects`);
  const port = Number(address.slice(address.lastIndexOf(':') + 1));
  return name === 'redis' ? portAnswers(port, REDIS_PING) : portAnswers(port);
}

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../config/package-root.ts';
import { MillraceError } from '../core/errors.ts';
import { findDocker, startDockerStack } from './docker-stack.ts';
import { namedStack } from './named-stack.ts';
import type { Stack } from './stack.ts';
import { type StartStackOptions, startStack } from './start-stack.ts';

/**
 * A stack from the first of these that there is: the services that `environment` names, the services of
 * docker-compose.yml where a Docker engine answers (one broker only), Java with Maven. With none of them it
 * rejects with STACK_UNAVAILABLE, whose message says what is missing and what to install.
 */
export async function findStack(
  environment: NodeJS.ProcessEnv,
  options: Omit<StartStackOptions, 'environment'> = {},
): Promise<Stack> {
  const { brokers = 1, onProgress = () => undefined } = options;
  const named = namedStack(environment);
  if (named !== undefined) return named;
  const composeFile = composeFilePath();
  const usesDocker = brokers === 1 && existsSync(composeFile);
  const docker = usesDocker ? await findDocker(environment) : undefined;
  if (docker !== undefined) return startDockerStack({ docker, composeFile, environment, onProgress });
  return startStack({ ...options, environment }).catch((error: unknown) => {
    if (!(error instanceof MillraceError)) throw error;
    throw new MillraceError(
      error.code,
      `${error.message}. Or start Docker, or name running services in MILLRACE_KAFKA_BROKERS, MILLRACE_REGISTRY_URL and MILLRACE_REDIS_URL`,
      { cause: error },
    );
  });
}

export function composeFilePath(): string {
  return join(packageRoot(), 'docker-compose.yml');
}

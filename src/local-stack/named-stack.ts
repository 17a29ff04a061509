import { MillraceError } from '../core/errors.ts';
import { type Stack, stackEnvironment } from './stack.ts';

/** The variables that name a stack. */
export const STACK_VARIABLES = [
  'MILLRACE_KAFKA_BROKERS',
  'MILLRACE_REGISTRY_URL',
  'MILLRACE_REDIS_URL',
] as const;

/**
 * The services that the environment names, used as they are, or undefined if it names none. All three are needed:
 * half a stack of somebody's and half of ours would hide a mistake.
 */
export function namedStack(environment: NodeJS.ProcessEnv): Stack | undefined {
  const values = STACK_VARIABLES.map((name) => environment[name] ?? '');
  const missing = STACK_VARIABLES.filter((_, index) => values[index] === '');
  if (missing.length === STACK_VARIABLES.length) return undefined;
  if (missing.length > 0) {
    throw new MillraceError(
      'STACK_UNAVAILABLE',
      `the environment names a part of a stack, but not ${missing.join(', ')}`,
      {
        advice: `Set ${STACK_VARIABLES.join(', ')}, or none of them`,
      },
    );
  }
  const [brokers = '', registryUrl = '', redisUrl = ''] = values;
  const kafkaBrokers = brokers.split(',').map((broker) => broker.trim());
  const addresses = { kafkaBrokers: kafkaBrokers.filter((broker) => broker !== ''), registryUrl, redisUrl };
  const notOurs = async (): Promise<never> => {
    throw new MillraceError(
      'STACK_UNAVAILABLE',
      'the services were named by the environment, so they are not ours to stop',
      {
        advice: `Unset ${STACK_VARIABLES.join(', ')} to run against a local stack`,
      },
    );
  };
  return {
    source: 'environment',
    ...addresses,
    pids: {},
    launches: {},
    dir: undefined,
    project: undefined,
    environment: stackEnvironment(addresses),
    stop: async () => undefined,
    restartBroker: notOurs,
    killBroker: notOurs,
    startBroker: notOurs,
    pauseBroker: notOurs,
    resumeBroker: notOurs,
    stopRegistry: notOurs,
    startRegistry: notOurs,
    pauseRegistry: notOurs,
    resumeRegistry: notOurs,
    stopRedis: notOurs,
    startRedis: notOurs,
    pauseRedis: notOurs,
    resumeRedis: notOurs,
  };
}

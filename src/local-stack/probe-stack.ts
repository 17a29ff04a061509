import { portAnswers, urlAnswers } from './await-ready.ts';

/** One that wants a password first answers as well. */
export const REDIS_PING = { ask: 'PING\r\n', answer: /^(\+PONG|-NOAUTH)/ };

export interface ServiceAnswer {
  service: 'kafka' | 'registry' | 'redis';
  address: string;
  /** The variable that names it. */
  variable: string;
  answers: boolean;
}

/** Asks each service that a stack's environment names whether it is there; one line for each broker. */
export async function probeStack(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<ServiceAnswer[]> {
  const { MILLRACE_KAFKA_BROKERS = '', MILLRACE_REGISTRY_URL = '', MILLRACE_REDIS_URL = '' } = environment;
  const brokers = MILLRACE_KAFKA_BROKERS.split(',')
    .map((broker) => broker.trim())
    .filter((broker) => broker !== '');
  return Promise.all([
    ...brokers.map(async (address): Promise<ServiceAnswer> => {
      const { host, port } = placeOf(`kafka://${address}`);
      const answers = await portAnswers(port, undefined, host);
      return { service: 'kafka', address, variable: 'MILLRACE_KAFKA_BROKERS', answers };
    }),
    urlAnswers(`${MILLRACE_REGISTRY_URL.replace(/\/+$/, '')}/subjects`).then((answers): ServiceAnswer => {
      return {
        service: 'registry',
        address: MILLRACE_REGISTRY_URL,
        variable: 'MILLRACE_REGISTRY_URL',
        answers,
      };
    }),
    redisAnswers(MILLRACE_REDIS_URL).then((answers): ServiceAnswer => {
      return { service: 'redis', address: MILLRACE_REDIS_URL, variable: 'MILLRACE_REDIS_URL', answers };
    }),
  ]);
}

/** Whether an address names this machine only. */
export function isLoopback(address: string): boolean {
  const { host } = placeOf(address.includes('://') ? address : `kafka://${address}`);
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

function redisAnswers(url: string): Promise<boolean> {
  const { host, port } = placeOf(url, 6379);
  // What speaks TLS does not answer a ping in the clear.
  return portAnswers(port, url.startsWith('rediss:') ? undefined : REDIS_PING, host);
}

function placeOf(url: string, defaultPort = 0): { host: string; port: number } {
  if (!URL.canParse(url)) return { host: '', port: 0 };
  const { hostname, port } = new URL(url);
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? defaultPort : Number(port) };
}

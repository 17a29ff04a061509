import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { settingVariables } from '../../../src/config/load-settings.ts';
import { KAFKA_VERSION, REGISTRY_VERSION } from '../../../src/local-stack/maven-project.ts';

const root = join(import.meta.dirname, '../../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const STORES = ['kafka', 'registry', 'redis'];
const OURS = ['feature-extractor', 'request-router', 'accelerator-worker', 'policy-controller'];

const composeSchema = v.object({
  services: v.record(
    v.string(),
    v.object({
      image: v.string(),
      command: v.optional(v.array(v.string())),
      ports: v.optional(v.array(v.string()), []),
      environment: v.optional(v.record(v.string(), v.union([v.string(), v.number()])), {}),
      healthcheck: v.object({
        test: v.optional(v.array(v.string()), []),
        interval: v.optional(v.string()),
        retries: v.optional(v.number()),
        disable: v.optional(v.boolean()),
      }),
      user: v.optional(v.string()),
      read_only: v.optional(v.boolean()),
      cap_drop: v.optional(v.array(v.string())),
      volumes: v.optional(v.array(v.string())),
      depends_on: v.optional(v.record(v.string(), v.object({ condition: v.string() }))),
    }),
  ),
});
const { services } = v.parse(composeSchema, parse(read('docker-compose.yml'), { merge: true }));
const packageJson = v.parse(
  v.object({ version: v.string(), devDependencies: v.object({ node: v.string() }) }),
  JSON.parse(read('package.json')),
);

function service(name: string) {
  const found = services[name];
  if (found === undefined) throw new Error(`no service ${name}`);
  return found;
}

describe('docker-compose.yml', () => {
  it('has the stores and our services, and no other', () => {
    expect(Object.keys(services).toSorted()).toEqual([...STORES, ...OURS, 'topics'].toSorted());
  });

  it('creates the topics once, before our services start', () => {
    const { command, depends_on, user, read_only } = service('topics');
    expect(command).toEqual(['node', 'bin/millrace.js', 'topics', 'apply']);
    expect({ user, read_only, depends_on }).toEqual({
      user: 'node',
      read_only: true,
      depends_on: { kafka: { condition: 'service_healthy' } },
    });
  });

  it('pins every image, to the versions that the local stack runs', () => {
    expect(service('kafka').image).toBe(`apache/kafka:${KAFKA_VERSION}`);
    expect(service('registry').image).toBe(`apicurio/apicurio-registry:${REGISTRY_VERSION}`);
    expect(service('redis').image).toBe('redis:7.4');
    for (const name of OURS) expect(service(name).image).toBe(`millrace:${packageJson.version}`);
  });

  it.each([...STORES, ...OURS])('%s has a health check, and its ports on loopback only', (name) => {
    expect(service(name).healthcheck.test[0]).toMatch(/^CMD(-SHELL)?$/);
    expect(service(name).ports).not.toEqual([]);
    for (const port of service(name).ports) expect(port).toMatch(/^127\.0\.0\.1:/);
  });

  it.each(OURS)('%s starts its own program, locked down, once all stores are healthy', (name) => {
    const { command, user, read_only, cap_drop, depends_on, healthcheck, environment } = service(name);
    expect(command).toEqual(['node', `services/${name}/main.ts`]);
    expect({ user, read_only, cap_drop }).toEqual({ user: 'node', read_only: true, cap_drop: ['ALL'] });
    const healthy = { condition: 'service_healthy' };
    expect(depends_on).toEqual({
      kafka: healthy,
      registry: healthy,
      redis: healthy,
      topics: { condition: 'service_completed_successfully' },
    });
    expect(healthcheck.test.join(' ')).toContain(
      `http://127.0.0.1:${environment['MILLRACE_HTTP_PORT']}/readyz`,
    );
  });

  it('gives our services settings that there are', () => {
    const known = settingVariables().map(({ variable }) => variable);
    for (const name of OURS) {
      const named = Object.keys(service(name).environment);
      expect(named).toContain('MILLRACE_KAFKA_BROKERS');
      for (const variable of named) expect(known, `${name}: ${variable}`).toContain(variable);
    }
  });

  it('advertises to this machine the port that it binds, and to the services another', () => {
    const { ports, environment } = service('kafka');
    const bound = /^127\.0\.0\.1:(\$\{KAFKA_PORT:-9092\}):9092$/.exec(ports[0] ?? '')?.[1];
    expect(environment['KAFKA_ADVERTISED_LISTENERS']).toBe(
      `HOST://127.0.0.1:${bound},PLAINTEXT://kafka:19092`,
    );
    for (const name of OURS) expect(service(name).environment['MILLRACE_KAFKA_BROKERS']).toBe('kafka:19092');
  });

  it('mounts the Redis configuration of the repository', () => {
    expect(service('redis').volumes).toEqual(['./deploy/redis/redis.conf:/etc/redis/redis.conf:ro']);
  });
});

describe('deploy/redis/redis.conf', () => {
  const users = new Map(
    [...read('deploy/redis/redis.conf').matchAll(/^user (\S+) (.*)$/gm)].map((match) => [
      match[1] ?? '',
      (match[2] ?? '').split(' '),
    ]),
  );

  it('lets nobody in without a name', () => {
    expect(users.get('default')).toEqual(['off']);
  });

  it.each(OURS)(
    'knows the user of %s, and lets only the controller write more than leases and reports',
    (name) => {
      const url = new URL(String(service(name).environment['MILLRACE_REDIS_URL']));
      const rules = users.get(url.username) ?? [];
      expect(rules).toContain('on');
      expect(rules).toContain(`>${url.password}`);
      const writable = rules.filter(
        (rule) => rule.startsWith('~') || rule.startsWith('%W') || rule.startsWith('%RW'),
      );
      const expected =
        name === 'policy-controller' ? ['~millrace:*'] : ['~millrace:lease:*', '~millrace:rep:*'];
      expect(writable).toEqual(expected);
    },
  );
});

describe('Dockerfile', () => {
  const lines = read('Dockerfile').split('\n');

  it('runs the Node that the tests run, in more than one stage', () => {
    expect(lines).toContain(`ARG NODE_VERSION=${packageJson.devDependencies.node}`);
    const stages = lines.filter((line) => line.startsWith('FROM '));
    expect(stages.length).toBeGreaterThan(1);
    for (const stage of stages) expect(stage).toMatch(/^FROM node:\$\{NODE_VERSION\}-slim( AS \w+)?$/);
  });

  it('is not run as root', () => {
    const last = lines.findLastIndex((line) => line.startsWith('FROM '));
    expect(lines.slice(last)).toContain('USER node');
  });

  it('copies only what .dockerignore lets through', () => {
    const ignore = read('.dockerignore').split('\n');
    const copied = lines.flatMap((line) => /^COPY (?!--from)(.+) \S+$/.exec(line)?.[1]?.split(' ') ?? []);
    expect(copied).toContain('src');
    expect(ignore[0]).toBe('*');
    for (const path of copied) expect(ignore).toContain(`!${path}`);
  });
});

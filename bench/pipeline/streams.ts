import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { findCommand, findJava, type Java } from '../../src/local-stack/java.ts';
import type { Subject } from './subject.ts';

const run = promisify(execFile);
const PROJECT = join(import.meta.dirname, '..', 'peers', 'kafka-streams');
const JAR = join(PROJECT, 'target', 'streams-relay.jar');

/** A Kafka Streams topology over the same topics, in a JVM of its own: see bench/peers/kafka-streams. Built by Maven at its first use. */
export async function startStreams(options: {
  brokers: readonly string[];
  topics: readonly string[];
}): Promise<Subject> {
  const java = await findJava(process.env);
  if (java === undefined) throw new Error('Kafka Streams needs Java 21 or newer');
  if (!existsSync(JAR)) await build(java);
  const state = await mkdtemp(join(tmpdir(), 'millrace-streams-'));
  const classes = [JAR, join(PROJECT, 'target', '*')].join(delimiter);
  const application = `${options.topics[0]}.streams`;
  const settings = [options.brokers.join(','), application, state, String(cpus().length)];
  const child = spawn(
    java.command,
    ['-cp', classes, 'millrace.StreamsRelay', ...settings, ...options.topics],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const ready = new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', () => resolve());
    child.once('exit', (code) => reject(new Error(`Kafka Streams ended with ${code}`)));
  });
  await ready;
  return {
    pids: [child.pid ?? -1],
    async stop() {
      child.stdin.end();
      await ended;
      await rm(state, { recursive: true, force: true });
    },
  };
}

async function build(java: Java): Promise<void> {
  const maven = await findCommand('mvn', process.env);
  if (maven === undefined) throw new Error('Kafka Streams needs Maven to be built');
  await run(maven, ['--batch-mode', '--quiet', '--strict-checksums', 'package'], {
    cwd: PROJECT,
    env: { ...process.env, JAVA_HOME: java.home },
  });
}

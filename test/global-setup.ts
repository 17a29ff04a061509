import { applyPatches } from '../src/adapters/kafka/kafkajs/patches.ts';
import { findStack } from '../src/local-stack/find-stack.ts';
import { registryProcess } from './registry-threads.ts';

/**
 * Real Kafka, registry and Redis for whoever needs them: those that the environment names, else a local stack that ends with the run.
 * `npm test` starts one for all; this serves a single file run by hand.
 */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env['MILLRACE_KAFKA_BROKERS'] !== undefined) return undefined;
  applyPatches();
  const stack = await findStack(process.env);
  Object.assign(process.env, stack.environment, registryProcess(stack));
  return () => stack.stop();
}

import { type MemoryBroker, memoryBroker } from '../../../src/adapters/memory/bus.ts';
import { memorySchemaRegistry } from '../../../src/adapters/memory/schema-registry.ts';
import { type SilentTelemetry, silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { systemClock } from '../../../src/adapters/system/clock.ts';
import type { Connection } from '../../../src/client/connection.ts';
import { type Codecs, createCodecs } from '../../../src/contracts/codec.ts';
import {
  makeScoredResult,
  makeTimings,
  type ScoredResult,
  type ScoreRequest,
} from '../../../src/contracts/records.ts';
import { recordTopics, topicSpecs } from '../../../src/contracts/topic-specs.ts';
import { topicNames } from '../../../src/contracts/topics.ts';
import { partitionForKey } from '../../../src/core/request/partition.ts';
import type { InboundRecord, MessageBus } from '../../../src/ports/message-bus.ts';
import type { SchemaRegistry } from '../../../src/ports/schema-registry.ts';

export const RESULTS = 'millrace.scored-results.v1';
export const INGRESS = 'millrace.ingress.v1';
const PARTITIONS = 4;

/** Topics, a registry and a broker in memory, with what plays the pipeline's part. */
export interface MemoryInstallation {
  broker: MemoryBroker;
  telemetry: SilentTelemetry;
  connectBus(): MessageBus;
  /** A client's connection; `registry` stands between it and the installation's own. */
  open(registry?: SchemaRegistry): Promise<Connection>;
  registry: SchemaRegistry;
  /** Appends a result as the pipeline would, by default on the partition of its requestId. */
  publish(result: ScoredResult, partition?: number): Promise<void>;
  /** Appends these bytes in place of a result. */
  publishBytes(requestId: string, value: Buffer | null, partition?: number): Promise<void>;
  /** Everything on a topic so far. */
  recordsOf(topic: string): Promise<InboundRecord[]>;
  requests(): Promise<ScoreRequest[]>;
  close(): Promise<void>;
}

export async function memoryInstallation(): Promise<MemoryInstallation> {
  const clock = systemClock();
  const telemetry = silentTelemetry();
  const broker = memoryBroker({ clock });
  const registry = memorySchemaRegistry();
  const topics = topicNames();
  const connectBus = (): MessageBus =>
    broker.connect({ clientId: 'test', drainTimeoutMs: 1_000, sessionTimeoutMs: 6_000, telemetry });
  const pipeline = connectBus();
  await pipeline.admin.createTopics(
    topicSpecs({
      topics,
      partitions: PARTITIONS,
      replication: 1,
      pools: new Map([['cpu', 2]]),
      tenants: ['acme'],
    }),
  );
  const records = recordTopics({ topics, tenants: ['acme'], pools: ['cpu'] });
  const codecs = createCodecs({ registry, clock });
  await codecs.register(records);
  const publishBytes = async (requestId: string, value: Buffer | null, partition?: number): Promise<void> => {
    const key = Buffer.from(requestId);
    await pipeline.produce({
      topic: RESULTS,
      partition: partition ?? partitionForKey(key, PARTITIONS),
      key,
      value,
    });
  };
  const recordsOf = async (topic: string): Promise<InboundRecord[]> => {
    const found: InboundRecord[] = [];
    const reader = await pipeline.read({ topics: [topic], startAt: 'earliest' }, (some) =>
      found.push(...some),
    );
    await reader.caughtUp;
    await reader.close();
    return found;
  };
  let ids = 0;
  return {
    broker,
    telemetry,
    registry,
    connectBus,
    async open(own) {
      const bus = connectBus();
      const writes = new Map([...records].filter(([, { record }]) => record !== 'ScoredResult'));
      const clientCodecs: Codecs = createCodecs({ registry: own ?? registry, clock });
      await clientCodecs.register(writes);
      const newId = (): string => {
        ids += 1;
        return `id-${ids}`;
      };
      return { bus, codecs: clientCodecs, topics, clock, telemetry, newId, close: () => bus.close() };
    },
    publish: (result, partition) =>
      publishBytes(result.requestId, codecs.for('ScoredResult').encode(result), partition),
    publishBytes,
    recordsOf,
    async requests() {
      return (await recordsOf(INGRESS)).map(({ value }) => {
        const decoded = codecs.for('ScoreRequest').decode(value);
        if (decoded.status !== 'ok') throw new Error(`a request cannot be read: ${decoded.status}`);
        return decoded.value;
      });
    },
    close: () => pipeline.close(),
  };
}

/** A scored result of the request at `millrace.ingress.v1/0/<offset>`. */
export function scored(requestId: string, offset: number, rest: Partial<ScoredResult> = {}): ScoredResult {
  return makeScoredResult({
    requestId,
    identity: { topic: INGRESS, partition: 0, offset },
    outcome: 'SCORED',
    timings: makeTimings({ totalMs: 3 }),
    ...rest,
  });
}

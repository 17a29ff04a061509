import type { Connection } from '../client/connection.ts';
import type { ScoreRequest } from '../contracts/records.ts';
import { partitionForKey } from '../core/request/partition.ts';

/** A sender of requests to ingress that looks the partitions up once: for generators, which send many. */
export async function openSender(connection: Connection): Promise<(request: ScoreRequest) => Promise<void>> {
  const { bus, codecs, topics } = connection;
  const topic = topics.ingress();
  const partitions = await bus.partitionCount(topic);
  const codec = codecs.for('ScoreRequest');
  return (request) => {
    const key = Buffer.from(request.requestId);
    return bus.produce({
      topic,
      partition: partitionForKey(key, partitions),
      key,
      value: codec.encode(request),
      headers: codec.headers,
    });
  };
}

/** Writes what a broker answers to a fetch, in each version that a client may speak. */

export interface WrittenPartition {
  partition: number;
  errorCode?: number;
  highWatermark?: bigint;
  aborted?: readonly { producerId: bigint; firstOffset: bigint }[];
  preferredReadReplica?: number;
  records?: Buffer | null;
}

export interface WrittenTopic {
  name: string;
  /** As hex, without hyphens. */
  id: string;
  partitions: readonly WrittenPartition[];
}

const int16 = (value: number): Buffer => {
  const out = Buffer.alloc(2);
  out.writeInt16BE(value);
  return out;
};
const int32 = (value: number): Buffer => {
  const out = Buffer.alloc(4);
  out.writeInt32BE(value);
  return out;
};
const int64 = (value: bigint): Buffer => {
  const out = Buffer.alloc(8);
  out.writeBigInt64BE(value);
  return out;
};

function uvarint(value: number): Buffer {
  const out: number[] = [];
  let left = value;
  for (; left >= 0x80; left >>>= 7) out.push((left & 0x7f) | 0x80);
  return Buffer.from([...out, left]);
}

/** @param tagged with a field in each place for tagged fields, which a reader passes over */
export function fetchBytes(
  version: number,
  topics: readonly WrittenTopic[],
  { errorCode = 0, throttleTimeMs = 3, tagged = false } = {},
): Buffer {
  const isCompact = version >= 12;
  const tags = (): Buffer[] => {
    if (!isCompact) return [];
    return [tagged ? Buffer.from([1, 99, 3, 7, 7, 7]) : Buffer.from([0])];
  };
  const length = (count: number | null): Buffer =>
    isCompact ? uvarint(count === null ? 0 : count + 1) : int32(count ?? -1);
  const array = <T>(list: readonly T[], element: (one: T) => Buffer[]): Buffer[] => [
    length(list.length),
    ...list.flatMap((one) => [...element(one), ...tags()]),
  ];
  const nameOf = ({ name, id }: WrittenTopic): Buffer[] => {
    if (version >= 13) return [Buffer.from(id, 'hex')];
    return [isCompact ? uvarint(name.length + 1) : int16(name.length), Buffer.from(name)];
  };
  const partition = (each: WrittenPartition): Buffer[] => [
    int32(each.partition),
    int16(each.errorCode ?? 0),
    int64(each.highWatermark ?? 9n),
    int64(8n),
    ...(version >= 5 ? [int64(1n)] : []),
    ...array(each.aborted ?? [], ({ producerId, firstOffset }) => [int64(producerId), int64(firstOffset)]),
    ...(version >= 11 ? [int32(each.preferredReadReplica ?? -1)] : []),
    length(each.records?.length ?? null),
    each.records ?? Buffer.alloc(0),
  ];
  return Buffer.concat([
    int32(throttleTimeMs),
    ...(version >= 7 ? [int16(errorCode), int32(77)] : []),
    ...array(topics, (topic) => [...nameOf(topic), ...array(topic.partitions, partition)]),
    ...tags(),
  ]);
}

/** What a broker answers to a fetch, of the versions 4 (Kafka 0.11, the first with record batches) to 17, with the records as they lie in it. */

export interface AbortedTransaction {
  producerId: bigint;
  firstOffset: bigint;
}

export interface PartitionResponse {
  partition: number;
  errorCode: number;
  highWatermark: bigint;
  lastStableOffset: bigint;
  abortedTransactions: AbortedTransaction[];
  /** -1 where the leader is to be asked, or does not say. */
  preferredReadReplica: number;
  /** Record batches, one after another; the last may be cut off. */
  records: Buffer;
}

export interface FetchResponse {
  throttleTimeMs: number;
  errorCode: number;
  sessionId: number;
  /** `topic` is its name, from version 13 on its id as hex with hyphens. */
  topics: { topic: string; partitions: PartitionResponse[] }[];
}

const VERSION_LEAST = 4;
const VERSION_MOST = 17;
const SESSIONS_SINCE = 7;
const LOG_START_SINCE = 5;
const PREFERRED_REPLICA_SINCE = 11;
const COMPACT_SINCE = 12;
const TOPIC_IDS_SINCE = 13;
const UUID_BYTES = 16;
const NOTHING = Buffer.alloc(0);

/** @throws RangeError where the answer ends too early, Error for a version that is not known */
export function readFetchResponse(bytes: Buffer, version: number): FetchResponse {
  if (version < VERSION_LEAST || version > VERSION_MOST)
    throw new Error(
      `fetches of version ${version} cannot be read, only of ${VERSION_LEAST} to ${VERSION_MOST}`,
    );
  return new ResponseReader(bytes, version).response();
}

class ResponseReader {
  readonly #bytes: Buffer;
  readonly #version: number;
  readonly #isCompact: boolean;
  #at = 0;

  constructor(bytes: Buffer, version: number) {
    this.#bytes = bytes;
    this.#version = version;
    this.#isCompact = version >= COMPACT_SINCE;
  }

  response(): FetchResponse {
    const throttleTimeMs = this.#int32();
    const hasSession = this.#version >= SESSIONS_SINCE;
    const errorCode = hasSession ? this.#int16() : 0;
    const sessionId = hasSession ? this.#int32() : 0;
    const topics = this.#array(() => ({
      topic: this.#version >= TOPIC_IDS_SINCE ? this.#uuid() : this.#string(),
      partitions: this.#array(() => this.#partition()),
    }));
    return { throttleTimeMs, errorCode, sessionId, topics };
  }

  #partition(): PartitionResponse {
    const partition = this.#int32();
    const errorCode = this.#int16();
    const highWatermark = this.#int64();
    const lastStableOffset = this.#int64();
    if (this.#version >= LOG_START_SINCE) this.#int64();
    const abortedTransactions = this.#array(() => ({
      producerId: this.#int64(),
      firstOffset: this.#int64(),
    }));
    const preferredReadReplica = this.#version >= PREFERRED_REPLICA_SINCE ? this.#int32() : -1;
    const records = this.#take(this.#length('records'));
    return {
      partition,
      errorCode,
      highWatermark,
      lastStableOffset,
      abortedTransactions,
      preferredReadReplica,
      records,
    };
  }

  /** Each element of a compact array ends with tagged fields, of which none is of use here. */
  #array<T>(element: () => T): T[] {
    const length = this.#length('array');
    const list: T[] = [];
    for (let i = 0; i < length; i++) {
      list.push(element());
      if (this.#isCompact) this.#skipTaggedFields();
    }
    return list;
  }

  #skipTaggedFields(): void {
    for (let left = this.#uvarint(); left > 0; left--) {
      this.#uvarint();
      this.#take(this.#uvarint());
    }
  }

  #string(): string {
    return this.#take(this.#length('string')).toString('utf8');
  }

  #uuid(): string {
    const hex = this.#take(UUID_BYTES).toString('hex');
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  }

  /** 0 for null too. */
  #length(kind: 'string' | 'array' | 'records'): number {
    if (this.#isCompact) return Math.max(0, this.#uvarint() - 1);
    return Math.max(0, kind === 'string' ? this.#int16() : this.#int32());
  }

  #take(length: number): Buffer {
    if (length === 0) return NOTHING;
    const start = this.#at;
    this.#at += length;
    if (this.#at > this.#bytes.length) throw new RangeError('the answer to a fetch ends too early');
    return this.#bytes.subarray(start, this.#at);
  }

  #uvarint(): number {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 28; scale *= 128) {
      const byte = this.#take(1)[0] ?? 0;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    throw new RangeError('a length of more than five bytes');
  }

  #int16(): number {
    return this.#take(2).readInt16BE();
  }

  #int32(): number {
    return this.#take(4).readInt32BE();
  }

  #int64(): bigint {
    return this.#take(8).readBigInt64BE();
  }
}

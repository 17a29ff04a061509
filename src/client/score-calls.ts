import type { ScoredResult, ScoreRequest } from '../contracts/records.ts';
import { MillraceError } from '../core/errors.ts';
import { partitionForKey } from '../core/request/partition.ts';
import type { InboundRecord, Reader } from '../ports/message-bus.ts';
import type { Connection } from './connection.ts';

interface Call {
  resolve(result: ScoredResult): void;
  reject(error: Error): void;
}

/**
 * Requests that wait for their result. All results of one client come on one partition of scored-results, which it names in its
 * requests, so that it reads no other.
 */
export class ScoreCalls {
  readonly #connection: Connection;
  readonly #calls = new Map<string, Call>();
  readonly #partition: number;
  readonly #reader: Reader;

  private constructor(connection: Connection, partition: number, reader: Reader) {
    this.#connection = connection;
    this.#partition = partition;
    this.#reader = reader;
  }

  static async open(connection: Connection): Promise<ScoreCalls> {
    const topic = connection.topics.fixed('scored-results');
    const partition = partitionForKey(
      Buffer.from(connection.newId()),
      await connection.bus.partitionCount(topic),
    );
    let calls: ScoreCalls | undefined;
    const reader = await connection.bus.read(
      { topics: [topic], partitions: [partition], startAt: 'latest' },
      (records) => {
        for (const record of records) calls?.receive(record);
      },
    );
    calls = new ScoreCalls(connection, partition, reader);
    return calls;
  }

  get partition(): number {
    return this.#partition;
  }

  /** Resolves with the terminal outcome, whatever it is. Rejects when the signal aborts or the client closes. */
  call(
    request: ScoreRequest,
    send: (request: ScoreRequest) => Promise<void>,
    signal?: AbortSignal,
  ): Promise<ScoredResult> {
    return new Promise((resolve, reject) => {
      const abort = (): void =>
        this.#end(request.requestId, (call) =>
          call.reject(new MillraceError('CLOSED', 'the call was aborted', { cause: signal?.reason })),
        );
      if (this.#calls.has(request.requestId)) {
        reject(
          new MillraceError('INVALID_REQUEST', 'a call with this requestId is waiting already', {
            value: request.requestId,
            advice: 'Give each call an id of its own',
          }),
        );
        return;
      }
      const settle = (): void => signal?.removeEventListener('abort', abort);
      this.#calls.set(request.requestId, {
        resolve: (result) => {
          settle();
          resolve(result);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      });
      if (signal?.aborted) return abort();
      signal?.addEventListener('abort', abort, { once: true });
      send(request).catch((error: unknown) =>
        this.#end(request.requestId, (call) =>
          call.reject(error instanceof Error ? error : new Error(String(error))),
        ),
      );
    });
  }

  receive(record: InboundRecord): void {
    const { codecs, clock } = this.#connection;
    const decoded = codecs.for('ScoredResult').decode(record.value);
    if (decoded.status === 'ok') this.#end(decoded.value.requestId, (call) => call.resolve(decoded.value));
    else if (decoded.status === 'schema-unknown') {
      codecs.learn(decoded.schemaId).then(
        () => this.receive(record),
        () => clock.after(500, () => this.receive(record)),
      );
    }
  }

  async close(): Promise<void> {
    await this.#reader.close();
    for (const id of [...this.#calls.keys()])
      this.#end(id, (call) => call.reject(new MillraceError('CLOSED', 'the client was closed')));
  }

  #end(requestId: string, how: (call: Call) => void): void {
    const call = this.#calls.get(requestId);
    if (call === undefined) return;
    this.#calls.delete(requestId);
    how(call);
  }
}

import type { ScoredResult } from '../contracts/records.ts';
import { MillraceError } from '../core/errors.ts';
import { identityKey, type RequestIdentity } from '../core/outcome/identity.ts';
import { partitionForKey } from '../core/request/partition.ts';
import type { InboundRecord, Reader } from '../ports/message-bus.ts';
import type { Connection } from './connection.ts';
import { readResult } from './read-result.ts';

/** Produces the request, with that `resultPartition`, and says where it lies then; undefined where the broker does not. */
export type SendRequest = (resultPartition: number) => Promise<RequestIdentity | undefined>;

interface Call {
  /** Identity of the request; `unsent` until the broker has stored it, `unknown` where it does not say where: any result of its id answers it then. */
  answers: string | 'unsent' | 'unknown';
  /** Results of its id that came before that. */
  early: ScoredResult[];
  resolve(result: ScoredResult): void;
  reject(error: Error): void;
}

interface Reading {
  partition: number;
  reader: Reader;
}

/**
 * Requests that wait for their result. All results of one client come on one partition of scored-results, which it names in its requests,
 * so that it reads no other. It reads from the first call on. A call is answered by the result of its very request: another one of the same id may
 * be under way, of a call that was aborted, or of somebody else.
 */
export class ScoreCalls {
  readonly #connection: Connection;
  readonly #calls = new Map<string, Call>();
  #reading: Promise<Reading> | undefined;
  #closed = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Resolves with the terminal outcome, whatever it is.
   * @throws MillraceError CLOSED when the signal aborts or the client closes, INVALID_REQUEST where a call of this id is waiting, what
   *   `send` throws, and why the result cannot be read where it cannot
   */
  call(requestId: string, send: SendRequest, signal?: AbortSignal): Promise<ScoredResult> {
    return new Promise((resolve, reject) => {
      const refused = this.#refusal(requestId, signal);
      if (refused !== undefined) {
        reject(refused);
        return;
      }
      const abort = (): void => this.#end(call, requestId, () => call.reject(abortedError(signal)));
      const settle = (): void => signal?.removeEventListener('abort', abort);
      const call: Call = {
        answers: 'unsent',
        early: [],
        resolve: (result) => {
          settle();
          resolve(result);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      };
      this.#calls.set(requestId, call);
      signal?.addEventListener('abort', abort, { once: true });
      this.#sendWhenReading(call, requestId, send).catch((error: unknown) =>
        this.#end(call, requestId, () =>
          call.reject(error instanceof Error ? error : new Error(String(error))),
        ),
      );
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const [id, call] of [...this.#calls]) this.#end(call, id, () => call.reject(closedError()));
    // A reader that could not be opened was told to the calls that wanted it.
    const reading = await this.#reading?.catch(() => undefined);
    await reading?.reader.close();
  }

  #refusal(requestId: string, signal: AbortSignal | undefined): MillraceError | undefined {
    if (this.#closed) return closedError();
    if (signal?.aborted) return abortedError(signal);
    if (!this.#calls.has(requestId)) return undefined;
    return new MillraceError('INVALID_REQUEST', 'a call with this requestId is waiting already', {
      value: requestId,
      advice: 'Give each call an id of its own',
    });
  }

  async #sendWhenReading(call: Call, requestId: string, send: SendRequest): Promise<void> {
    const { partition } = await this.#read();
    if (this.#calls.get(requestId) !== call) return;
    const identity = await send(partition);
    call.answers = identity === undefined ? 'unknown' : identityKey(identity);
    for (const result of call.early.splice(0)) this.#answer(call, result);
  }

  #answer(call: Call, result: ScoredResult): void {
    if (call.answers === 'unsent') call.early.push(result);
    else if (call.answers === 'unknown' || call.answers === identityKey(result.identity))
      this.#end(call, result.requestId, () => call.resolve(result));
  }

  /** One reader for all calls; one that could not be opened is tried again by the next call. */
  #read(): Promise<Reading> {
    if (this.#reading === undefined) {
      const reading = this.#open();
      this.#reading = reading;
      reading.catch(() => {
        this.#reading = undefined;
      });
    }
    return this.#reading;
  }

  async #open(): Promise<Reading> {
    const { bus, topics } = this.#connection;
    const topic = topics.fixed('scored-results');
    const partition = partitionForKey(Buffer.from(this.#connection.newId()), await bus.partitionCount(topic));
    const reader = await bus.read(
      { topics: [topic], partitions: [partition], startAt: 'latest' },
      (records) => {
        for (const record of records) void this.#receive(record);
      },
    );
    return { partition, reader };
  }

  /** Never rejects: `readResult` does not. */
  async #receive(record: InboundRecord): Promise<void> {
    const read = await readResult(this.#connection, record, () => this.#calls.size > 0);
    if (read.status === 'unwanted') return;
    const requestId = read.status === 'read' ? read.result.requestId : (read.unreadable.requestId ?? '');
    const call = this.#calls.get(requestId);
    if (call === undefined) return;
    if (read.status === 'unreadable') {
      const { code, message, partition, offset } = read.unreadable;
      const what = `the result of this request cannot be read (scored-results ${partition}/${offset}): ${message}`;
      this.#end(call, requestId, () => call.reject(new MillraceError(code, what)));
    } else this.#answer(call, read.result);
  }

  #end(call: Call, requestId: string, how: () => void): void {
    if (this.#calls.get(requestId) !== call) return;
    this.#calls.delete(requestId);
    how();
  }
}

function closedError(): MillraceError {
  return new MillraceError('CLOSED', 'the client was closed', { advice: 'Connect a new one' });
}

function abortedError(signal: AbortSignal | undefined): MillraceError {
  return new MillraceError('CLOSED', 'the call was aborted', {
    advice: 'What was sent already may still be scored; its result is on scored-results',
    cause: signal?.reason,
  });
}

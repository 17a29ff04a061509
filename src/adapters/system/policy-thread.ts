import { Worker } from 'node:worker_threads';
import { MillraceError } from '../../core/errors.ts';
import type { PolicyDocument } from '../../core/policy/document.ts';
import type { Fleet } from '../../core/policy/fleet.ts';
import type { Cancel, Clock } from '../../ports/clock.ts';
import type { PolicyCall, PolicyReply } from './policy-thread-messages.ts';

/** A policy that is not read and validated by then never will be. */
const CHECK_MS_MAX = 30_000;
/** Policies come seldom, and sometimes a few in a row. */
const IDLE_MS = 10_000;

/** Reads and validates policies beside the event loop. */
export interface PolicyThread {
  /**
   * @param root of which the policy may differ in tuned constants only
   * @throws MillraceError INVALID_POLICY with the first problem; CLOSED after `close`, or where the thread failed or took too long
   */
  read(bytes: Uint8Array, fleet: Fleet, root?: Uint8Array): Promise<PolicyDocument>;
  close(): Promise<void>;
}

type Settled = PolicyReply['verdict'] | { status: 'failed'; why: string };

/** The thread is started by the first policy, ends when none came for a while, and keeps no process alive by itself. */
export function policyThread(clock: Clock, startWorker: () => Worker = startHost): PolicyThread {
  return new WorkerPolicyThread(clock, startWorker);
}

function startHost(): Worker {
  const host = import.meta.url.endsWith('.ts') ? './policy-thread-host.ts' : './policy-thread-host.js';
  return new Worker(new URL(host, import.meta.url));
}

class WorkerPolicyThread implements PolicyThread {
  readonly #clock: Clock;
  readonly #startWorker: () => Worker;
  readonly #waiting = new Map<number, (settled: Settled) => void>();
  #worker: Worker | undefined;
  #cancelIdle: Cancel | undefined;
  #calls = 0;
  #closed = false;

  constructor(clock: Clock, startWorker: () => Worker) {
    this.#clock = clock;
    this.#startWorker = startWorker;
  }

  async read(bytes: Uint8Array, fleet: Fleet, root?: Uint8Array): Promise<PolicyDocument> {
    if (this.#closed) throw new MillraceError('CLOSED', 'policies are read no more');
    this.#cancelIdle?.();
    const worker = this.#running();
    const call = ++this.#calls;
    const reply = await new Promise<Settled>((resolve) => {
      const cancel = this.#clock.after(CHECK_MS_MAX, () =>
        this.#fail(worker, `it took more than ${CHECK_MS_MAX} ms`),
      );
      this.#waiting.set(call, (settled) => {
        cancel();
        resolve(settled);
      });
      worker.postMessage({ call, bytes, root, fleet } satisfies PolicyCall);
    });
    this.#endWhenIdle();
    switch (reply.status) {
      case 'passed':
        return reply.document;
      case 'refused':
        throw new MillraceError('INVALID_POLICY', reply.message);
      case 'failed':
        throw new MillraceError('CLOSED', `the policy could not be read: ${reply.why}`);
      default:
        return reply satisfies never;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const worker = this.#worker;
    if (worker !== undefined) this.#fail(worker, 'it was closed meanwhile');
    await worker?.terminate();
  }

  #running(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    const worker = this.#startWorker();
    worker.unref();
    worker.on('message', ({ call, verdict }: PolicyReply) => {
      this.#waiting.get(call)?.(verdict);
      this.#waiting.delete(call);
    });
    worker.on('error', (error) => this.#fail(worker, String(error)));
    worker.on('exit', () => this.#fail(worker, 'its thread ended'));
    this.#worker = worker;
    return worker;
  }

  /** The next policy gets a new thread. */
  #fail(worker: Worker, why: string): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.#cancelIdle?.();
    void worker.terminate();
    for (const settle of this.#waiting.values()) settle({ status: 'failed', why });
    this.#waiting.clear();
  }

  #endWhenIdle(): void {
    const worker = this.#worker;
    if (worker === undefined || this.#waiting.size > 0) return;
    this.#cancelIdle?.();
    this.#cancelIdle = this.#clock.after(IDLE_MS, () => this.#fail(worker, 'it was idle'));
  }
}

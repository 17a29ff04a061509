import { Worker } from 'node:worker_threads';
import { MillraceError } from '../../core/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { SessionAnswer, SessionCall, SessionCommand, SessionReply } from './messages.ts';

type Answered<Kind extends SessionAnswer['kind']> = Extract<SessionAnswer, { kind: Kind }>;

/** `computeMs` of a call that failed: from when the thread was free for it to its answer. */
type Ran = Answered<'ran'> | (Answered<'failed'> & { computeMs: number });

interface Settled {
  answer: SessionAnswer;
  elapsedMs: number;
}

/** The near side of a session thread. Commands run in the order of the calls. */
export interface SessionThread {
  /** The graph's bytes go to the thread and do not come back. */
  create(command: Extract<SessionCommand, { kind: 'create' }>): Promise<Answered<'created' | 'failed'>>;
  /**
   * The command's slab goes to the thread and comes back, as another object, with the answer. `computeMs` is what the call took in the thread: the
   * way there and back, which a call that waits in it hides, is not in it.
   */
  run(command: Extract<SessionCommand, { kind: 'run' }>): Promise<Ran>;
  release(session: number): Promise<void>;
  /** Settles, with the reason, when the thread died by itself. Calls under way, and later ones, then never settle: whose fault it was is not known. */
  readonly died: Promise<string>;
  /** Ends the thread; calls that are under way answer `failed`. */
  close(): Promise<void>;
}

/**
 * The session thread in `worker`. It keeps the process alive only while a call is under way.
 * Every call throws MillraceError CLOSED after `close`.
 */
export function sessionThread(clock: Clock, worker: Worker = startWorker()): SessionThread {
  return new WorkerSessionThread(worker, clock);
}

export function startWorker(): Worker {
  const host = import.meta.url.endsWith('.ts') ? './session-host.ts' : './session-host.js';
  return new Worker(new URL(host, import.meta.url));
}

class WorkerSessionThread implements SessionThread {
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #waiting = new Map<number, { sentMs: number; resolve: (settled: Settled) => void }>();
  #calls = 0;
  #closed = false;
  /** When the thread last finished something: a call cannot have begun earlier. */
  #idleSinceMs = 0;
  readonly died: Promise<string>;
  readonly #resolveDied: (reason: string) => void;

  constructor(worker: Worker, clock: Clock) {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.died = promise;
    this.#resolveDied = resolve;
    this.#worker = worker;
    this.#clock = clock;
    worker.unref();
    worker.on('message', ({ call, answer }: SessionReply) => this.#settle(call, answer));
    worker.on('error', (error) => this.#resolveDied(`its thread failed: ${String(error)}`));
    worker.on('exit', () => this.#ended());
  }

  async create(
    command: Extract<SessionCommand, { kind: 'create' }>,
  ): Promise<Answered<'created' | 'failed'>> {
    const { answer } = await this.#call(command, [command.graph.buffer]);
    return expectKind('created', answer);
  }

  async run(command: Extract<SessionCommand, { kind: 'run' }>): Promise<Ran> {
    const { answer, elapsedMs } = await this.#call(command, [command.slab]);
    const ran = expectKind('ran', answer);
    return ran.kind === 'ran' ? ran : { ...ran, computeMs: elapsedMs };
  }

  async release(session: number): Promise<void> {
    await this.#call({ kind: 'release', session }, []);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#worker.terminate();
  }

  #call(command: SessionCommand, transfer: ArrayBuffer[]): Promise<Settled> {
    if (this.#closed) throw new MillraceError('CLOSED', 'the accelerator is closed');
    const call = ++this.#calls;
    return new Promise((resolve) => {
      if (this.#waiting.size === 0) this.#worker.ref();
      this.#waiting.set(call, { sentMs: this.#clock.monotonicMs(), resolve });
      this.#worker.postMessage({ call, command } satisfies SessionCall, transfer);
    });
  }

  #settle(call: number, answer: SessionAnswer): void {
    const waiting = this.#waiting.get(call);
    this.#waiting.delete(call);
    if (this.#waiting.size === 0) this.#worker.unref();
    const endMs = this.#clock.monotonicMs();
    const elapsedMs = endMs - Math.max(waiting?.sentMs ?? endMs, this.#idleSinceMs);
    this.#idleSinceMs = endMs;
    waiting?.resolve({ answer, elapsedMs });
  }

  #ended(): void {
    if (!this.#closed) {
      this.#resolveDied('its thread ended');
      return;
    }
    for (const call of [...this.#waiting.keys()])
      this.#settle(call, { kind: 'failed', message: 'the accelerator is closed' });
  }
}

function expectKind<Kind extends SessionAnswer['kind']>(
  kind: Kind,
  answer: SessionAnswer,
): Answered<Kind> | Answered<'failed'> {
  if (answer.kind === 'failed') return answer;
  if (isKind(kind, answer)) return answer;
  throw new TypeError(`the session thread answered ${answer.kind} where ${kind} was expected`);
}

function isKind<Kind extends SessionAnswer['kind']>(
  kind: Kind,
  answer: SessionAnswer,
): answer is Answered<Kind> {
  return answer.kind === kind;
}

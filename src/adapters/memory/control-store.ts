import { isDeepStrictEqual } from 'node:util';
import { checkDocumentSize } from '../../core/control/document-size.ts';
import { MillraceError } from '../../core/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import {
  type ControlStore,
  DOCUMENT_BYTES_MAX,
  type Lease,
  type PointerWrite,
  type PolicyPointer,
} from '../../ports/control-store.ts';

/** The control store in this process: what embedded runs, simulations and tests share. */
export interface MemoryControlServer {
  connect(): ControlStore;
  /** From now on every call is refused with STORE_UNAVAILABLE, and hints are lost. */
  stop(): void;
  /** Answers again, with what it held; every watcher is hinted, as after a reconnection. */
  start(): void;
  /** Forgets everything, as a store that was flushed or came back without its disk. */
  empty(): void;
  /** Forgets these and keeps the rest, as a store that evicts keys to make room. */
  lose(what: 'documents' | 'envelopes' | 'revocations'): void;
  /** Hints get lost while `losing` is true, as pub/sub messages do. */
  loseHints(losing: boolean): void;
  /** Remembers what is stored now; the answer puts that back, as a store restored from an old snapshot. */
  backup(): () => void;
}

/** One client of a store of its own. */
export function memoryControlStore(clock: Clock): ControlStore {
  return memoryControlServer({ clock }).connect();
}

/** Every answer comes at a later turn of the clock, and leases and reports expire by it. */
export function memoryControlServer({ clock }: { clock: Clock }): MemoryControlServer {
  const server = new Server(clock);
  return {
    connect: () => new Client(server),
    stop: () => server.stop(),
    start: () => server.start(),
    empty: () => server.restore(NOTHING),
    lose: (what) => server.restore({ ...server.backup(), [what]: NOTHING[what] }),
    loseHints: (losing) => server.loseHints(losing),
    backup: () => {
      const state = server.backup();
      return () => server.restore(state);
    },
  };
}

interface Expiring {
  value: string;
  untilMs: number;
}

interface State {
  pointers: ReadonlyMap<string, PolicyPointer>;
  documents: ReadonlyMap<string, Uint8Array>;
  envelopes: ReadonlyMap<string, Uint8Array>;
  revocations: Uint8Array | undefined;
  leases: ReadonlyMap<string, Expiring>;
  reports: ReadonlyMap<string, ReadonlyMap<string, Expiring>>;
}

const NOTHING: State = {
  pointers: new Map(),
  documents: new Map(),
  envelopes: new Map(),
  revocations: undefined,
  leases: new Map(),
  reports: new Map(),
};

class Server {
  readonly clock: Clock;
  readonly watchers = new Map<() => void, string>();
  #running = true;
  #losingHints = false;
  #pointers = new Map<string, PolicyPointer>();
  #documents = new Map<string, Uint8Array>();
  #envelopes = new Map<string, Uint8Array>();
  #revocations: Uint8Array | undefined;
  #leases = new Map<string, Expiring>();
  #reports = new Map<string, Map<string, Expiring>>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get running(): boolean {
    return this.#running;
  }

  stop(): void {
    this.#running = false;
  }

  start(): void {
    this.#running = true;
    for (const onHint of this.watchers.keys()) this.hintSoon(onHint);
  }

  loseHints(losing: boolean): void {
    this.#losingHints = losing;
  }

  backup(): State {
    return {
      pointers: new Map(this.#pointers),
      documents: new Map(this.#documents),
      envelopes: new Map(this.#envelopes),
      revocations: this.#revocations,
      leases: new Map(this.#leases),
      reports: new Map([...this.#reports].map(([scope, reports]) => [scope, new Map(reports)])),
    };
  }

  restore(state: State): void {
    this.#pointers = new Map(state.pointers);
    this.#documents = new Map(state.documents);
    this.#envelopes = new Map(state.envelopes);
    this.#revocations = state.revocations;
    this.#leases = new Map(state.leases);
    this.#reports = new Map([...state.reports].map(([scope, reports]) => [scope, new Map(reports)]));
  }

  /** Hints a watcher at the clock's next turn, unless it is gone by then or the store cannot be reached. */
  hintSoon(onHint: () => void): void {
    this.clock.after(0, () => {
      if (this.#running && this.watchers.has(onHint)) onHint();
    });
  }

  readPointer(scope: string): PolicyPointer | undefined {
    return structuredClone(this.#pointers.get(scope));
  }

  writePointer(scope: string, pointer: PolicyPointer): PointerWrite {
    const current = this.#pointers.get(scope);
    if (current !== undefined && !rises(current, pointer) && !goesOn(current, pointer)) {
      return { status: 'stale', current: structuredClone(current) };
    }
    this.#pointers.set(scope, structuredClone(pointer));
    if (!this.#losingHints) {
      for (const [onHint, watched] of this.watchers) if (watched === scope) this.hintSoon(onHint);
    }
    return { status: 'applied' };
  }

  putDocument(digest: string, bytes: Uint8Array): void {
    if (!this.#documents.has(digest)) this.#documents.set(digest, Uint8Array.from(bytes));
  }

  readDocument(digest: string): Uint8Array | undefined {
    const bytes = this.#documents.get(digest);
    return bytes === undefined ? undefined : Uint8Array.from(bytes);
  }

  hasDocument(digest: string): boolean {
    return this.#documents.has(digest);
  }

  putEnvelope(digest: string, bytes: Uint8Array): void {
    this.#envelopes.set(digest, Uint8Array.from(bytes));
  }

  readEnvelope(digest: string): Uint8Array | undefined {
    const bytes = this.#envelopes.get(digest);
    return bytes && Uint8Array.from(bytes);
  }

  putRevocations(bytes: Uint8Array): void {
    this.#revocations = Uint8Array.from(bytes);
  }

  readRevocations(): Uint8Array | undefined {
    return this.#revocations && Uint8Array.from(this.#revocations);
  }

  /** Takes or renews a lease: the first that the holder has already, else the first that nobody has. */
  hold(names: readonly string[], holder: string, ttlMs: number): string | undefined {
    const holderOf = (name: string): string | undefined => {
      const held = this.#leases.get(name);
      return held === undefined || this.#isOver(held) ? undefined : held.value;
    };
    const name =
      names.find((each) => holderOf(each) === holder) ?? names.find((each) => holderOf(each) === undefined);
    if (name !== undefined) this.#leases.set(name, this.#expiring(holder, ttlMs));
    return name;
  }

  release(name: string, holder: string): void {
    if (this.#leases.get(name)?.value === holder) this.#leases.delete(name);
  }

  report(scope: string, member: string, text: string, ttlMs: number): void {
    const reports = this.#reports.get(scope) ?? new Map<string, Expiring>();
    reports.set(member, this.#expiring(text, ttlMs));
    this.#reports.set(scope, reports);
  }

  readReports(scope: string): Map<string, string> {
    const reports = this.#reports.get(scope) ?? new Map<string, Expiring>();
    for (const [member, report] of reports) if (this.#isOver(report)) reports.delete(member);
    return new Map([...reports].map(([member, { value }]) => [member, value]));
  }

  #expiring(value: string, ttlMs: number): Expiring {
    return { value, untilMs: this.clock.monotonicMs() + ttlMs };
  }

  #isOver({ untilMs }: Expiring): boolean {
    return untilMs <= this.clock.monotonicMs();
  }
}

function rises(current: PolicyPointer, next: PolicyPointer): boolean {
  return next.epoch > current.epoch && next.term >= current.term;
}

/** It means the same, and is a later leader's, or the same leader renews the canary. */
function goesOn(current: PolicyPointer, next: PolicyPointer): boolean {
  if (!isDeepStrictEqual(meaningOf(current), meaningOf(next))) return false;
  const renews = (next.canary?.beat ?? 0) > (current.canary?.beat ?? 0);
  return next.term > current.term || (next.term === current.term && renews);
}

/** All but the term, and the beat of the canary. */
function meaningOf(pointer: PolicyPointer): object {
  const { canary } = pointer;
  return { ...pointer, term: undefined, canary: canary && { ...canary, beat: undefined } };
}

class Client implements ControlStore {
  readonly #server: Server;
  readonly #hints = new Set<() => void>();
  #closed = false;

  constructor(server: Server) {
    this.#server = server;
  }

  readPointer(scope: string): Promise<PolicyPointer | undefined> {
    return this.#call(() => this.#server.readPointer(scope));
  }

  writePointer(scope: string, pointer: PolicyPointer): Promise<PointerWrite> {
    return this.#call(() => this.#server.writePointer(scope, pointer));
  }

  async putDocument(digest: string, bytes: Uint8Array): Promise<void> {
    checkDocumentSize(digest, bytes.byteLength, DOCUMENT_BYTES_MAX);
    return this.#call(() => this.#server.putDocument(digest, bytes));
  }

  readDocument(digest: string): Promise<Uint8Array | undefined> {
    return this.#call(() => this.#server.readDocument(digest));
  }

  hasDocument(digest: string): Promise<boolean> {
    return this.#call(() => this.#server.hasDocument(digest));
  }

  putEnvelope(digest: string, bytes: Uint8Array): Promise<void> {
    return this.#call(() => this.#server.putEnvelope(digest, bytes));
  }

  readEnvelope(digest: string): Promise<Uint8Array | undefined> {
    return this.#call(() => this.#server.readEnvelope(digest));
  }

  putRevocations(bytes: Uint8Array): Promise<void> {
    return this.#call(() => this.#server.putRevocations(bytes));
  }

  readRevocations(): Promise<Uint8Array | undefined> {
    return this.#call(() => this.#server.readRevocations());
  }

  watch(scope: string, onHint: () => void): Promise<() => Promise<void>> {
    return this.#call(() => {
      // Its own function per watch, so that one callback may watch twice.
      const hint = (): void => onHint();
      this.#server.watchers.set(hint, scope);
      this.#hints.add(hint);
      this.#server.hintSoon(hint);
      return async () => this.#unwatch(hint);
    });
  }

  async acquireLease(names: readonly string[], holder: string, ttlMs: number): Promise<Lease | undefined> {
    const name = await this.#call(() => this.#server.hold(names, holder, ttlMs));
    if (name === undefined) return undefined;
    let released = false;
    return {
      name,
      holder,
      renew: () => this.#call(() => !released && this.#server.hold([name], holder, ttlMs) !== undefined),
      release: () => {
        released = true;
        return this.#call(() => this.#server.release(name, holder));
      },
    };
  }

  report(scope: string, member: string, text: string, ttlMs: number): Promise<void> {
    return this.#call(() => this.#server.report(scope, member, text, ttlMs));
  }

  readReports(scope: string): Promise<ReadonlyMap<string, string>> {
    return this.#call(() => this.#server.readReports(scope));
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const hint of this.#hints) this.#unwatch(hint);
  }

  #unwatch(hint: () => void): void {
    this.#server.watchers.delete(hint);
    this.#hints.delete(hint);
  }

  #call<T>(action: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#server.clock.after(0, () => {
        if (this.#server.running && !this.#closed) resolve(action());
        else reject(new MillraceError('STORE_UNAVAILABLE', 'The control store does not answer'));
      });
    });
  }
}

import { memoryControlServer } from '../../../../src/adapters/memory/control-store.ts';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import { MillraceError } from '../../../../src/core/errors.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import type { CanaryPointer, ControlStore, PolicyPointer } from '../../../../src/ports/control-store.ts';
import type { LastKnownGood } from '../../../../src/ports/last-known-good.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';
import type { ActiveCanary, ActivePolicy } from '../../../../src/stages/request-router/active-policy.ts';
import { PolicySource } from '../../../../src/stages/request-router/policy-source.ts';
import { policy } from './router.fixture.ts';

export const SCOPE = 'policy/test';
/** A hint or a poll has been followed by then. */
export const FOLLOWED_MS = 1_500;
export const LEASE_MS = 60_000;

/** Digests of texts are readable here. */
export const digestOfText = (text: string): string => `digest of ${text}`;

export interface StartOptions {
  wrap?: (store: ControlStore) => ControlStore;
  lastKnownGood?: LastKnownGood;
  unservable?: () => string | undefined;
  /** Shared with an earlier life of the same router. */
  world?: ReturnType<typeof newWorld>;
}

export function newWorld() {
  const clock = virtualClock();
  return { clock, server: memoryControlServer({ clock }), seed: 1 };
}

/** A router's policy source on a store in memory, and a controller's hand on that store. */
export function start({
  wrap = (store) => store,
  lastKnownGood,
  unservable,
  world = newWorld(),
}: StartOptions = {}) {
  const { clock, server } = world;
  const writer = server.connect();
  const telemetry = silentTelemetry();
  const applied: ActivePolicy[] = [];
  /** The canary of each swap. */
  const canaries: (ActiveCanary | undefined)[] = [];
  const compiled: string[] = [];
  const source = new PolicySource({
    store: wrap(server.connect()),
    clock,
    random: seededRandom(world.seed).stream('poll'),
    telemetry,
    scope: SCOPE,
    member: 'router-1',
    lastKnownGood,
    digest: (bytes) => digestOfText(Buffer.from(bytes).toString()),
    compile: (bytes) => {
      const text = Buffer.from(bytes).toString();
      compiled.push(text);
      if (text.startsWith('bad')) throw new MillraceError('INVALID_POLICY', `${text} has no leaf`);
      return policy().compiled;
    },
    ...(unservable && { unservable }),
    apply: (stable, canary) => {
      applied.push(stable);
      canaries.push(canary);
    },
  });
  const settle = async <T>(promise: Promise<T>): Promise<T> => {
    await clock.advanceBy(0);
    return promise;
  };
  /** Points to texts, which are stored as well unless told otherwise. */
  const publish = async (
    epoch: number,
    text: string,
    options: { withoutText?: boolean; canary?: Partial<CanaryPointer> & { text: string } } = {},
  ): Promise<PolicyPointer> => {
    const { canary } = options;
    const texts = options.withoutText === true ? [] : [text, canary?.text ?? text];
    for (const each of texts) await settle(writer.putDocument(digestOfText(each), Buffer.from(each)));
    const pointer = {
      epoch,
      term: 1,
      stable: { digest: digestOfText(text), name: 'test', version: epoch },
      canary: canary && canaryPointer(canary),
    };
    await settle(writer.writePointer(SCOPE, pointer));
    return pointer;
  };
  /** The leader lives. */
  const beat = async (pointer: PolicyPointer, beats: number): Promise<void> => {
    const { canary } = pointer;
    if (canary === undefined) throw new Error('there is nothing to renew');
    await settle(
      writer.writePointer(SCOPE, { ...pointer, canary: { ...canary, beat: canary.beat + beats } }),
    );
  };
  const report = async (): Promise<unknown> => {
    const reports = await settle(writer.readReports(SCOPE));
    return JSON.parse(reports.get('router-1') ?? 'null');
  };
  const started = async (): Promise<void> => {
    const starting = source.start();
    await clock.advanceBy(10);
    await starting;
  };
  /** What decides now, by the texts' digests. */
  const inForce = (): string => {
    const stable = applied.at(-1)?.ref.digest ?? 'nothing';
    const canary = canaries.at(-1);
    return canary === undefined
      ? stable
      : `${stable}, ${canary.mode} ${canary.percent} % ${canary.policy.ref.digest}`;
  };
  return {
    ...{ clock, server, writer, telemetry, applied, canaries, compiled, source },
    ...{ settle, publish, beat, report, started, inForce },
  };
}

export function canaryPointer({ text, ...fields }: Partial<CanaryPointer> & { text: string }): CanaryPointer {
  return {
    policy: { digest: digestOfText(text), name: 'test', version: 99 },
    mode: 'canary',
    percent: 5,
    salt: 'salt',
    unit: 'bucketKey',
    leaseMs: LEASE_MS,
    beat: 1,
    ...fields,
  };
}

export const epochs = (applied: readonly ActivePolicy[]): number[] => applied.map(({ epoch }) => epoch);

/** The same store, but for some of its calls. */
export function changed(store: ControlStore, changes: Partial<ControlStore>): ControlStore {
  return {
    readPointer: (scope) => store.readPointer(scope),
    readDocument: (digest) => store.readDocument(digest),
    hasDocument: (digest) => store.hasDocument(digest),
    writePointer: (scope, pointer) => store.writePointer(scope, pointer),
    putDocument: (digest, bytes) => store.putDocument(digest, bytes),
    putEnvelope: (digest, bytes) => store.putEnvelope(digest, bytes),
    readEnvelope: (digest) => store.readEnvelope(digest),
    putRevocations: (bytes) => store.putRevocations(bytes),
    readRevocations: () => store.readRevocations(),
    watch: (scope, onHint) => store.watch(scope, onHint),
    acquireLease: (names, holder, ttlMs) => store.acquireLease(names, holder, ttlMs),
    report: (scope, member, text, ttlMs) => store.report(scope, member, text, ttlMs),
    readReports: (scope) => store.readReports(scope),
    close: () => store.close(),
    ...changes,
  };
}

/** A store whose answers come when the test lets them. */
export class SlowStore {
  reading = 0;
  mostAtOnce = 0;
  reads = 0;
  readonly held: (() => void)[] = [];
  isHolding = false;

  wrap(store: ControlStore): ControlStore {
    return changed(store, {
      readPointer: async (scope: string) => {
        this.reads += 1;
        this.reading += 1;
        this.mostAtOnce = Math.max(this.mostAtOnce, this.reading);
        try {
          return await store.readPointer(scope);
        } finally {
          this.reading -= 1;
        }
      },
      readDocument: async (digest: string) => {
        const document = await store.readDocument(digest);
        if (this.isHolding) await new Promise<void>((resolve) => this.held.push(resolve));
        return document;
      },
    });
  }
}

import { MillraceError } from '../../core/errors.ts';
import type { CompiledPolicy } from '../../core/policy/compile.ts';
import type { RouterReport } from '../../core/rollout/router-report.ts';
import type { Cancel, Clock } from '../../ports/clock.ts';
import type { CanaryPointer, ControlStore, PolicyPointer, PolicyRef } from '../../ports/control-store.ts';
import type { KnownGood, LastKnownGood } from '../../ports/last-known-good.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { ActiveCanary, ActivePolicy } from './active-policy.ts';
import { CanaryLease } from './canary-lease.ts';
import { KnownGoodKeeper } from './known-good-keeper.ts';
import {
  PolicyCheck,
  type PolicyCheckOptions,
  type PolicySupply,
  type PolicyVerdict,
} from './policy-check.ts';

export interface PointerAdoptionOptions extends PolicyCheckOptions {
  store: Pick<ControlStore, 'readDocument' | 'readEnvelope' | 'readRevocations'>;
  clock: Clock;
  telemetry: Telemetry;
  /** Where what passed every check is kept for the next start; nowhere where it is left out. */
  lastKnownGood?: LastKnownGood | undefined;
  /**
   * Why the fleet as it is now could not serve a policy on its way to live; undefined where it could, or where it is not known. A policy that is
   * live is never refused for that: what it cannot have is answered in another way.
   */
  unservable?(compiled: CompiledPolicy): string | undefined;
  /** The swap: from now on these decide. Called only where something changed. */
  apply(stable: ActivePolicy, canary: ActiveCanary | undefined): void;
}

/**
 * What a pointer means for a router. Only a higher epoch is adopted, and only after every check of its documents; a refusal leaves the stable
 * policy as it is, with its reason. The canary is a matter of its own: one that is refused does not hold up the stable policy, and one that
 * passed is obeyed only while its lease is held.
 */
export class PointerAdoption {
  readonly #options: PointerAdoptionOptions;
  readonly #check: PolicyCheck;
  readonly #lease = new CanaryLease();
  readonly #keeper: KnownGoodKeeper | undefined;
  #pointer: PolicyPointer | undefined;
  #stable: ActivePolicy | undefined;
  /** It passed; whether it is obeyed is up to the lease. */
  #canary: ActiveCanary | undefined;
  #applied: { stable: ActivePolicy; canary: ActiveCanary | undefined } | undefined;
  #cancelLapse: Cancel | undefined;
  #closed = false;

  constructor(options: PointerAdoptionOptions) {
    this.#options = options;
    this.#check = new PolicyCheck(options);
    const { lastKnownGood } = options;
    this.#keeper = lastKnownGood && new KnownGoodKeeper({ ...options, lastKnownGood });
  }

  /**
   * Starts with what an earlier life kept: the newest generation that passes. Its canary waits for a sign that its controller lives.
   * @returns the epoch that is in force then
   */
  async restore(): Promise<number | undefined> {
    const { lastKnownGood, scope, telemetry } = this.#options;
    for (const good of (await lastKnownGood?.load(scope)) ?? []) {
      const { pointer } = good;
      const supply = supplyOf(good);
      // By the keys as they were when it was adopted: a key that ran out, or was taken out, since then takes no policy out of force.
      const verdict = await this.#check.check(pointer.stable, supply);
      if (this.#closed) return undefined;
      if (verdict.status === 'refused') {
        const what = { scope, epoch: pointer.epoch, reason: verdict.reason };
        telemetry.logger.error(what, 'a last-known-good policy does not pass; trying the one before');
        continue;
      }
      if (pointer.canary !== undefined) await this.#check.check(pointer.canary.policy, supply);
      this.#check.signatures?.restore(good.revokedKeys);
      this.#adoptStable(pointer, {
        ...activeOf(pointer.stable, pointer.epoch, verdict),
        source: 'last-known-good',
      });
      this.#keeper?.hasKept(pointer.epoch);
      this.#applyWhatHolds();
      return pointer.epoch;
    }
    return undefined;
  }

  /** @param askedAtMs when the store was asked, by the monotonic clock @returns what there is to report */
  async take(pointer: PolicyPointer | undefined, askedAtMs: number): Promise<RouterReport | undefined> {
    const refused = pointer === undefined ? undefined : this.#refuseContradiction(pointer);
    if (refused !== undefined) return refused;
    this.#lease.saw(pointer, askedAtMs);
    if (pointer === undefined) return undefined;
    const refusals = [await this.#takeStable(pointer), await this.#takeCanary(pointer)];
    if (this.#closed) return undefined;
    this.#applyWhatHolds();
    const refusal = refusals.find((report) => report !== undefined);
    return refusal ?? { status: 'applied', epoch: pointer.epoch };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelLapse?.();
    await this.#keeper?.close();
  }

  /** An epoch that went back, or one that has two meanings: a store restored from a backup, or a second writer. */
  #refuseContradiction(pointer: PolicyPointer): RouterReport | undefined {
    const known = this.#pointer;
    if (known === undefined || pointer.epoch > known.epoch) return undefined;
    const reason = contradiction(known, pointer, this.#stable?.source === 'store');
    if (reason === undefined) return undefined;
    return { status: 'refused', epoch: pointer.epoch, what: 'pointer', reason };
  }

  async #takeStable(pointer: PolicyPointer): Promise<RouterReport | undefined> {
    const { epoch, stable } = pointer;
    if (epoch === this.#pointer?.epoch) {
      if (this.#stable?.source !== 'store') {
        this.#stable = this.#stable && { ...this.#stable, source: 'store' };
        this.#pointer = pointer;
      }
      return undefined;
    }
    const verdict = await this.#verdictOn(stable);
    if (this.#closed) return undefined;
    if (verdict.status === 'refused') {
      // Whatever the new pointer wants, it is not the canary of the one before.
      this.#canary = undefined;
      return { status: 'refused', epoch, what: 'stable', reason: verdict.reason };
    }
    this.#adoptStable(pointer, activeOf(pointer.stable, pointer.epoch, verdict));
    // The canary's document may take a while, or never come.
    if (pointer.canary !== undefined && this.#check.known(pointer.canary.policy) === undefined)
      this.#applyWhatHolds();
    return undefined;
  }

  #adoptStable(pointer: PolicyPointer, stable: ActivePolicy): void {
    this.#pointer = pointer;
    this.#stable = stable;
    this.#canary = undefined;
  }

  async #takeCanary(pointer: PolicyPointer): Promise<RouterReport | undefined> {
    const { epoch, canary } = pointer;
    if (this.#closed || epoch !== this.#pointer?.epoch) return undefined;
    if (this.#canary !== undefined) return undefined;
    if (canary === undefined) {
      this.#save(pointer);
      return undefined;
    }
    const verdict = await this.#verdictOn(canary.policy);
    if (this.#closed) return undefined;
    const unservable = verdict.status === 'passed' ? this.#options.unservable?.(verdict.compiled) : undefined;
    if (unservable !== undefined) return { status: 'refused', epoch, what: 'canary', reason: unservable };
    if (verdict.status === 'passed') this.#canary = canaryOf(pointer, canary, verdict);
    if (verdict.status === 'passed' || verdict.lasting) this.#save(pointer);
    return verdict.status === 'passed'
      ? undefined
      : { status: 'refused', epoch, what: 'canary', reason: verdict.reason };
  }

  async #verdictOn(ref: PolicyRef): Promise<PolicyVerdict> {
    const known = this.#check.known(ref);
    if (known !== undefined) return known;
    const { store } = this.#options;
    const { signatures } = this.#check;
    try {
      signatures?.revoke(await store.readRevocations());
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      return { status: 'refused', reason: error.message, lasting: false };
    }
    return this.#check.check(ref, {
      document: (digest) => store.readDocument(digest),
      envelope: (digest) => store.readEnvelope(digest),
    });
  }

  #applyWhatHolds(): void {
    const { clock, telemetry, scope, apply } = this.#options;
    const stable = this.#stable;
    if (stable === undefined) return;
    const isObeyed = this.#canary !== undefined && this.#lease.isHeld(clock.monotonicMs());
    const canary = isObeyed ? this.#canary : undefined;
    this.#awaitLapse(isObeyed);
    if (this.#applied?.stable === stable && this.#applied.canary === canary) return;
    this.#applied = { stable, canary };
    apply(stable, canary);
    const candidate = canary && {
      version: canary.policy.ref.version,
      mode: canary.mode,
      percent: canary.percent,
    };
    telemetry.logger.info(
      { scope, epoch: stable.epoch, version: stable.ref.version, source: stable.source, canary: candidate },
      'policy applied',
    );
  }

  #awaitLapse(isObeyed: boolean): void {
    const { clock, telemetry, scope } = this.#options;
    this.#cancelLapse?.();
    this.#cancelLapse = undefined;
    if (!isObeyed) return;
    this.#cancelLapse = clock.after(this.#lease.untilMs - clock.monotonicMs(), () => {
      telemetry.logger.warn(
        { scope, epoch: this.#stable?.epoch },
        'the lease of the canary lapsed: no sign of its controller; the stable policy decides everything',
      );
      this.#applyWhatHolds();
    });
  }

  /** Only once for each epoch: a beat changes nothing that a start could use. */
  #save(pointer: PolicyPointer): void {
    if (this.#keeper?.lacks(pointer.epoch) !== true) return;
    const canary = this.#canary === undefined ? undefined : pointer.canary;
    const named = [pointer.stable, ...(canary === undefined ? [] : [canary.policy])];
    const evidence = named.flatMap((ref) => this.#check.evidenceOf(ref) ?? []);
    if (evidence.length < named.length) return;
    this.#keeper.keep({
      pointer: { ...pointer, canary },
      documents: new Map(evidence.flatMap(({ documents }) => [...documents])),
      envelopes: new Map(evidence.flatMap(({ envelopes }) => [...envelopes])),
      revokedKeys: [...(this.#check.signatures?.revoked ?? [])],
    });
  }
}

function supplyOf({ documents, envelopes }: KnownGood): PolicySupply {
  return {
    document: async (digest) => documents.get(digest),
    envelope: async (digest) => envelopes.get(digest),
  };
}

/** Where a pointer that is not newer says something else. What was kept on disk has no canary where that had been refused. */
function contradiction(
  known: PolicyPointer,
  { epoch, stable, canary }: PolicyPointer,
  isFromStore: boolean,
): string | undefined {
  if (epoch < known.epoch) return `epoch ${epoch} is older than epoch ${known.epoch}, which is in force`;
  if (stable.digest !== known.stable.digest)
    return `epoch ${epoch} is in force with another policy, ${known.stable.digest}`;
  if ((isFromStore || known.canary !== undefined) && !isSameCanary(known.canary, canary))
    return `epoch ${epoch} is in force with another canary, ${describeCanary(known.canary)}, not ${describeCanary(canary)}`;
  return undefined;
}

/** But for its beat. */
function isSameCanary(one: CanaryPointer | undefined, other: CanaryPointer | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return (
    one.policy.digest === other.policy.digest &&
    one.mode === other.mode &&
    one.percent === other.percent &&
    one.salt === other.salt &&
    one.unit === other.unit &&
    one.leaseMs === other.leaseMs
  );
}

function describeCanary(canary: CanaryPointer | undefined): string {
  return canary === undefined ? 'none' : `${canary.mode} ${canary.percent} % of ${canary.policy.digest}`;
}

type Passed = Extract<PolicyVerdict, { status: 'passed' }>;

/** Nobody vouches for what a pointer calls the document of its digest: name and version are the document's own. */
function activeOf({ digest }: PolicyRef, epoch: number, { compiled }: Passed): ActivePolicy {
  const { name, version } = compiled.document;
  return { ref: { digest, name, version }, epoch, compiled, source: 'store' };
}

function canaryOf({ epoch }: PolicyPointer, canary: CanaryPointer, passed: Passed): ActiveCanary {
  const { policy, mode, percent, salt, unit } = canary;
  return { policy: activeOf(policy, epoch, passed), mode, percent, salt, unit };
}

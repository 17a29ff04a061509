import type { RouterWindow } from '../../contracts/records.ts';
import { evolveRollout } from '../../core/rollout/evolve-rollout.ts';
import { missingOf } from '../../core/rollout/readiness.ts';
import type { RolloutHappening } from '../../core/rollout/rollout-event.ts';
import { NO_SCOPE, type ScopeState } from '../../core/rollout/rollout-state.ts';
import type { RolloutTerms } from '../../core/rollout/rollout-terms.ts';
import { shadowReasons } from '../../core/rollout/shadow-rules.ts';
import type { RolloutConfig } from '../../stages/policy-controller/controller-config.ts';
import { RolloutWindows, type Watched } from '../../stages/policy-controller/rollout-windows.ts';
import { termsOf } from '../../stages/policy-controller/terms-of.ts';
import type { ActivePolicy } from '../../stages/request-router/active-policy.ts';
import { ShadowCounts } from './shadow-counts.ts';
import type { ShadowHold, ShadowReport } from './shadow-report.ts';

/** A policy that decides beside the live one, and how rollouts are judged. */
export interface ShadowCandidate {
  readonly policy: ActivePolicy;
  readonly rollout: RolloutConfig;
}

/** Follows a shadow by the windows of the routers: what it counts, and what the rules of a rollout make of it, look by look. */
export class ShadowWatch {
  readonly #candidate: ShadowCandidate;
  readonly #terms: RolloutTerms;
  readonly #watched: Watched;
  readonly #windows = new RolloutWindows(() => '');
  readonly #counts = new ShadowCounts();
  readonly #holds = new Map<ShadowHold['code'], ShadowHold>();
  #scope: ScopeState;
  #looks = 0;
  readonly #startedMs: number;

  /** @param startedMs when traffic begins, on the clock of the looks */
  constructor(candidate: ShadowCandidate, startedMs: number) {
    const { ref, compiled, epoch } = candidate.policy;
    this.#candidate = candidate;
    this.#terms = termsOf(compiled.document, candidate.rollout);
    this.#startedMs = startedMs;
    this.#scope = evolveRollout(NO_SCOPE, {
      ...CAUSE,
      type: 'rollout-started',
      candidate: ref,
      terms: this.#terms,
      salt: '',
      atMs: startedMs,
      epoch,
    });
    this.#watched = {
      policy: ref.name,
      epoch,
      candidateDigest: ref.digest,
      models: [],
      pools: [],
      scoreEdges: {},
    };
    this.#windows.observe(this.#watched, startedMs, startedMs, []);
  }

  take(window: RouterWindow): void {
    this.#windows.takeRouterWindow(window);
    this.#counts.take(window);
  }

  /** As the controller looks at a rollout: at the windows since its look before. */
  look(nowMs: number): void {
    const observation = this.#windows.observe(this.#watched, nowMs, nowMs, []);
    if (observation === undefined) return;
    this.#apply({ type: 'rollout-looked', observation });
    const { rollout } = this.#scope;
    if (rollout === undefined) return;
    this.#looks += 1;
    const reasons = shadowReasons(rollout);
    for (const { code, text } of reasons) {
      const known = this.#holds.get(code);
      const firstMs = known?.firstMs ?? nowMs - this.#startedMs;
      this.#holds.set(code, { code, text, firstMs, looks: (known?.looks ?? 0) + 1 });
    }
  }

  /** @param pools of the fleet, in the order of the report */
  report(pools: readonly string[]): ShadowReport {
    const { ref } = this.#candidate.policy;
    const { rollout } = this.#scope;
    const { leaves, limits } = this.#terms;
    return {
      candidate: { name: ref.name, version: ref.version, digest: ref.digest },
      ...this.#counts.report({ candidateLeaves: leaves, pools }, limits.leafHitsMin),
      rollout: {
        looks: this.#looks,
        holds: [...this.#holds.values()],
        missing: rollout === undefined ? [] : missingOf(rollout),
      },
    };
  }

  #apply(happening: RolloutHappening): void {
    this.#scope = evolveRollout(this.#scope, { ...happening, ...CAUSE });
  }
}

const CAUSE = { commandId: '', scope: '', actor: '' };

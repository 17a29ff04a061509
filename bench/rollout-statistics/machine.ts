import { conclude } from '../../src/core/rollout/conclude.ts';
import { decideRollout, type RolloutRequest } from '../../src/core/rollout/decide-rollout.ts';
import { evolveRollout } from '../../src/core/rollout/evolve-rollout.ts';
import type { Observation } from '../../src/core/rollout/observation.ts';
import { silentWindow } from '../../src/core/rollout/observation-shape.ts';
import { AUTOMATIC, type RolloutEvent } from '../../src/core/rollout/rollout-event.ts';
import { NO_SCOPE, type ScopeState, stageOf } from '../../src/core/rollout/rollout-state.ts';
import {
  DEFAULT_LIMITS,
  type RolloutStage,
  type RolloutTerms,
} from '../../src/core/rollout/rollout-terms.ts';

const NAME = 'bench';
/** More cannot follow from one look. */
const EVENTS_MAX = 8;
const SHADOW: RolloutStage = { name: 'shadow', percent: 0, dwellMs: 0 };

/** The rollout's own state machine, at the beginning of the canary. Its shadow has nothing to look at here, and ends at once. */
export class Machine {
  #scope: ScopeState;
  #held = false;

  constructor(stages: readonly { percent: number; dwellMs: number }[]) {
    const [live, candidate] = [1, 2].map((version) => ({ name: NAME, version, digest: `sha256:${version}` }));
    if (live === undefined || candidate === undefined) throw new RangeError('no policies');
    this.#scope = { ...NO_SCOPE, published: [live, candidate], live, wentLive: [1], epoch: 1 };
    this.#apply({ kind: 'start', version: 2, terms: termsOf(stages), atMs: 0 });
    this.#apply({ kind: 'look', observation: { ...silentWindow(1, 1), shadow: EMPTY_SHADOW } });
  }

  /** Percent that the canary gets now; undefined where the rollout has ended. */
  get percent(): number | undefined {
    const { rollout } = this.#scope;
    return rollout === undefined ? undefined : stageOf(rollout).percent;
  }

  get outcome(): 'live' | 'rolled back' | 'undecided' {
    const outcome = this.#scope.ended?.outcome;
    if (outcome === 'live') return 'live';
    return outcome === undefined ? 'undecided' : 'rolled back';
  }

  /** Whether it was ever on hold. */
  get held(): boolean {
    return this.#held;
  }

  look(observation: Observation): void {
    this.#apply({ kind: 'look', observation });
  }

  #apply(request: RolloutRequest): void {
    const decision = decideRollout(NAME, this.#scope, request);
    if (decision === 'nothing') throw new RangeError('a look that was none');
    if ('refused' in decision) throw new RangeError(decision.refused);
    let next: RolloutEvent | undefined = {
      ...decision.happening,
      commandId: '',
      scope: NAME,
      actor: AUTOMATIC,
    };
    for (let events = 0; next !== undefined; events++) {
      if (events > EVENTS_MAX) throw new RangeError(`${next.type} follows from itself`);
      this.#held ||= next.type === 'rollout-held';
      this.#scope = evolveRollout(this.#scope, next);
      next = conclude(NAME, this.#scope);
    }
  }
}

const EMPTY_SHADOW: NonNullable<Observation['shadow']> = {
  requests: 1,
  changed: 0,
  changedOutsideDeclared: 0,
  latencyApart: 0,
  exceptions: 0,
  costUsP99: 0,
  leaves: {},
  projectedUtilisation: {},
};

function termsOf(stages: readonly { percent: number; dwellMs: number }[]): RolloutTerms {
  return {
    stages: [
      SHADOW,
      ...stages.map((stage, index) => ({ name: index === 0 ? 'canary' : 'ramp', ...stage }) as const),
    ],
    unit: 'bucketKey',
    leaseMs: 60_000,
    leaves: [],
    waivedLeaves: [],
    expect: undefined,
    // Scores have a benchmark of their own: score-shift.
    limits: {
      ...DEFAULT_LIMITS,
      shadowRequestsMin: 0,
      scorePsiMax: undefined,
      scoreMeanShiftMax: undefined,
    },
    queries: [],
    autoPromote: true,
    autoRollback: true,
  };
}

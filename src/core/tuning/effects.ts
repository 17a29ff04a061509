import { type CompiledPolicy, compilePolicy, stepTunable } from '../policy/compile.ts';
import type { PolicyDocument } from '../policy/document.ts';
import { leafAt, type SignalVector } from '../policy/explain.ts';
import type { Fleet } from '../policy/fleet.ts';
import { validatePolicy } from '../policy/validate.ts';
import { type Direction, type DomainShare, domainOf, type Effect } from './tuning-observation.ts';

const DIRECTIONS: readonly Direction[] = ['up', 'down'];

/**
 * What one step of each tunable constant would move, either way, by deciding a sample of recent requests twice. A step that a bound makes
 * impossible is left out; one that would break the policy (a golden test, a branch out of reach) is blocked.
 *
 * @param tuned values in force; what is not named has the document's own
 * @param samples recent requests, laid out as the document's own numbers and flags (`vectorSignals`)
 */
export function effectsOf(
  document: PolicyDocument,
  tuned: ReadonlyMap<string, number>,
  fleet: Fleet,
  samples: readonly SignalVector[],
): Effect[] {
  const current = compilePolicy(document, { fleet, tuned });
  const before = samples.map((sample) => placeOf(current, sample));
  return current.tunables.flatMap((tunable) =>
    DIRECTIONS.flatMap((direction) => {
      const { name, value } = tunable;
      const to = stepTunable(tunable, value, direction);
      if (to === value) return [];
      const next: PolicyDocument = { ...document, tuned: new Map([...document.tuned, ...tuned, [name, to]]) };
      const compiled = compilePolicy(next, { fleet });
      const after = samples.map((sample) => placeOf(compiled, sample));
      return [{ name, direction, to, ...moved(before, after, fleet), blocked: problemOf(next, fleet) }];
    }),
  );
}

/** Where a request goes: accelerator and memory domain. Fallbacks are not looked at: who needs them is known only when it happens. */
interface Place {
  readonly accelerator: string;
  readonly memory: string;
}

function placeOf(policy: CompiledPolicy, { signals, context }: SignalVector): Place {
  return leafAt(policy, policy.decide(signals, context)).target;
}

interface Flow {
  readonly place: Place;
  requests: number;
  net: number;
}

function moved(
  before: readonly Place[],
  after: readonly Place[],
  fleet: Fleet,
): Pick<Effect, 'losing' | 'gaining'> {
  const flows = new Map<string, Flow>();
  const flowOf = (place: Place): Flow => {
    const key = `${place.accelerator} ${place.memory}`;
    const known = flows.get(key) ?? { place, requests: 0, net: 0 };
    flows.set(key, known);
    return known;
  };
  for (const [index, from] of before.entries()) {
    const source = flowOf(from);
    source.requests += 1;
    source.net -= 1;
    flowOf(after[index] ?? from).net += 1;
  }
  const all = [...flows.values()];
  const losers = all.filter(({ net }) => net < 0);
  const gainers = all.filter(({ net }) => net > 0);
  return {
    losing: losers.flatMap(({ place, net, requests }) => shares(place, -net / requests, fleet)),
    gaining: gainers.flatMap(({ place, net }) => shares(place, net / before.length, fleet)),
  };
}

/** Of an accelerator class with several pools any may be meant: which one is the router's choice, request by request. */
function shares({ accelerator, memory }: Place, share: number, fleet: Fleet): DomainShare[] {
  const pools = fleet.accelerators.get(accelerator)?.pools ?? [];
  return pools.map(({ pool }) => ({ domain: domainOf(pool, memory), share }));
}

function problemOf(document: PolicyDocument, fleet: Fleet): string | undefined {
  const error = validatePolicy(document, fleet).find(({ severity }) => severity === 'error');
  return error && `${error.path}: ${error.what}`;
}

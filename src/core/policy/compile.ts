import { listNames, MillraceError } from '../errors.ts';
import {
  type Branch,
  type LeafBranch,
  leafBranches,
  type PolicyDocument,
  type Target,
  type Tunable,
  type Variant,
} from './document.ts';
import { type Fleet, REFERENCE_FLEET } from './fleet.ts';
import { ALWAYS, toFormula } from './formula.ts';
import { didYouMean } from './nearest.ts';
import type { Context } from './operand.ts';
import { compileProgram, type Program } from './program.ts';

/** The end of a branch. */
export interface Leaf {
  readonly id: string;
  /** Its place in `CompiledPolicy.leaves`. */
  readonly index: number;
  readonly target: Target;
  /** The model variant that the branch insists on; undefined leaves the choice to the router. */
  readonly variant: Variant | undefined;
  /** Accelerator classes to try, in this order, where the target has no capacity. */
  readonly fallback: readonly string[];
}

export interface TunableInForce extends Tunable {
  readonly value: number;
}

export interface CompileOptions {
  /** Names of the caller's vector of signals, by slot. Default: the policy's own numbers and flags, as declared. */
  readonly signalNames?: readonly string[];
  /** Gives targets without a memory domain one. Default: the reference fleet. */
  readonly fleet?: Fleet;
  /** Values of tunable constants, instead of the policy's own. */
  readonly tuned?: ReadonlyMap<string, number>;
}

export interface CompiledPolicy {
  readonly document: PolicyDocument;
  readonly leaves: readonly Leaf[];
  readonly signalNames: readonly string[];
  readonly tunables: readonly TunableInForce[];
  /** Signals that conditions read and the caller's vector lacks: they are missing in every request. */
  readonly absentSignals: readonly string[];
  /**
   * The index of the leaf that a request ends in. Never throws, and allocates nothing for conditions on signals alone.
   *
   * @param signals one value per name of `signalNames`: numbers as they are, flags as 1 or 0, NaN for what is missing
   * @param context texts by name, for string signals
   */
  decide(signals: Float64Array, context?: Context): number;
}

/**
 * @throws MillraceError INVALID_POLICY: a tuned value that the policy does not know or allow, or a target without
 *   a memory domain on an accelerator that the fleet does not have
 */
export function compilePolicy(document: PolicyDocument, options: CompileOptions = {}): CompiledPolicy {
  const fleet = options.fleet ?? REFERENCE_FLEET;
  const signalNames = options.signalNames ?? vectorSignals(document);
  const slots = new Map(signalNames.map((name, slot) => [name, slot]));
  const tunables = tunablesInForce(document, options.tuned);
  const tuned = new Map(tunables.map(({ name, value }) => [name, value]));
  const branches = leafBranches(document.tree);
  const places = new Map(branches.map((branch, index) => [branch, index]));
  return {
    document,
    leaves: branches.map((branch, index) => toLeaf(branch, index, fleet)),
    signalNames,
    tunables,
    absentSignals: vectorSignals(document).filter((name) => !slots.has(name) && isRead(document.tree, name)),
    decide: compileProgram(toProgram(document.tree, places, tuned), (name) => slots.get(name)),
  };
}

/** The value one step up or down from here, within the bounds. A percentage divides on the way down: up and down again is where it was. */
export function stepTunable(tunable: Tunable, value: number, direction: 'up' | 'down'): number {
  const { by, size } = tunable.step;
  const factor = 1 + size / 100;
  const amount = direction === 'up' ? size : -size;
  const next = by === 'amount' ? value + amount : direction === 'up' ? value * factor : value / factor;
  return Math.min(tunable.max, Math.max(tunable.min, next));
}

/** Numbers and flags that the policy declares, in the order it declares them. */
export function vectorSignals(document: PolicyDocument): string[] {
  return [...document.signals].flatMap(([name, type]) => (type === 'string' ? [] : [name]));
}

function toProgram(
  tree: readonly Branch[],
  places: ReadonlyMap<LeafBranch, number>,
  tuned: ReadonlyMap<string, number>,
): Program {
  return tree.map((branch) => {
    const then = branch.kind === 'tree' ? toProgram(branch.tree, places, tuned) : places.get(branch);
    if (then === undefined) throw new Error(`leaf ${branch.id} has no index`);
    return { when: branch.when === undefined ? ALWAYS : toFormula(branch.when.condition, tuned), then };
  });
}

function toLeaf(branch: LeafBranch, index: number, fleet: Fleet): Leaf {
  const { accelerator, kernel, variant } = branch.to;
  const memory = branch.to.memory ?? fleet.accelerators.get(accelerator)?.memories[0];
  if (memory === undefined) {
    throw new MillraceError(
      'INVALID_POLICY',
      `${branch.path}: no memory domain is named, and the fleet "${fleet.name}" lacks the accelerator`,
      {
        value: accelerator,
        allowed: listNames(fleet.accelerators.keys()),
        ...didYouMean(accelerator, fleet.accelerators.keys()),
      },
    );
  }
  return {
    id: branch.id,
    index,
    target: { accelerator, kernel, memory },
    variant,
    fallback: branch.fallback,
  };
}

function tunablesInForce(
  document: PolicyDocument,
  overrides: ReadonlyMap<string, number> | undefined,
): TunableInForce[] {
  const names = document.tunables.map(({ name }) => name);
  for (const name of overrides?.keys() ?? []) {
    if (names.includes(name)) continue;
    throw new MillraceError('INVALID_POLICY', 'the policy has no such tunable constant', {
      value: name,
      allowed: listNames(names, 'it has none'),
      ...didYouMean(name, names),
    });
  }
  return document.tunables.map((tunable) => {
    const value = overrides?.get(tunable.name) ?? document.tuned.get(tunable.name) ?? tunable.default;
    if (value >= tunable.min && value <= tunable.max) return { ...tunable, value };
    throw new MillraceError('INVALID_POLICY', `the tunable constant ${tunable.name} would leave its bounds`, {
      value,
      allowed: `${tunable.min} … ${tunable.max}`,
    });
  });
}

function isRead(tree: readonly Branch[], name: string): boolean {
  return tree.some(
    (branch) => branch.when?.reads.includes(name) || (branch.kind === 'tree' && isRead(branch.tree, name)),
  );
}

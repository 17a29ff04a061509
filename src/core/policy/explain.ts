import type { CompiledPolicy, Leaf } from './compile.ts';
import type { SignalValue } from './document.ts';
import { decideStepwise, type SignalReader } from './evaluate.ts';
import { type Context, readText } from './operand.ts';

/** Why a request ended in its leaf; plain JSON, so that it can travel in a result's trace. */
export interface Explanation {
  readonly leaf: string;
  /** Every branch that was looked at, in order; the last one is the leaf. */
  readonly steps: readonly ExplainedStep[];
}

export interface ExplainedStep {
  /** The branch's id. */
  readonly node: string;
  /** The condition as it was written; null for a branch without one. */
  readonly when: string | null;
  /** `unknown`: it turned on a signal that is missing, so the branch was not taken. */
  readonly outcome: 'true' | 'false' | 'unknown';
  /** The signals that the condition names, flags as booleans; null for what is missing. */
  readonly read: { readonly [signal: string]: SignalValue | null };
}

/**
 * Decides once more, step by step: the leaf is the one that `decide` gives for the same request.
 *
 * @param signals one value per name of `policy.signalNames`, NaN for what is missing
 */
export function explainDecision(
  policy: CompiledPolicy,
  signals: Float64Array,
  context?: Context,
): Explanation {
  const reader = signalReader(policy, signals, context);
  const tuned = new Map(policy.tunables.map(({ name, value }) => [name, value]));
  const { leaf, steps } = decideStepwise(policy.document, reader, tuned);
  return {
    leaf: leaf.id,
    steps: steps.map(({ branch, truth }) => ({
      node: branch.id,
      when: branch.when?.text ?? null,
      outcome: truth === undefined ? 'unknown' : truth ? 'true' : 'false',
      read: Object.fromEntries(
        (branch.when?.reads ?? []).map((name) => [name, readValue(policy, reader, name)]),
      ),
    })),
  };
}

/** One line per step, for a terminal. */
export function formatExplanation(explanation: Explanation): string[] {
  const lines = explanation.steps.map(({ node, when, outcome, read }) => {
    if (when === null) return `${node}: no condition → taken`;
    const values = Object.entries(read).map(([name, value]) => `${name} = ${value ?? 'missing'}`);
    return `${node}: ${when} → ${outcome}${values.length === 0 ? '' : ` (${values.join(', ')})`}`;
  });
  return [...lines, `leaf: ${explanation.leaf}`];
}

/** A request as `decide` takes it. */
export interface SignalVector {
  readonly signals: Float64Array;
  readonly context: Context;
}

/** A request from its signals by name, as a golden test or a result's trace has them; null and what is not named are missing. */
export function toSignalVector(
  policy: CompiledPolicy,
  values: Iterable<readonly [string, SignalValue | null]>,
): SignalVector {
  const signals = new Float64Array(policy.signalNames.length).fill(Number.NaN);
  const context: Record<string, string> = Object.create(null);
  for (const [name, value] of values) {
    if (typeof value === 'string') context[name] = value;
    else if (value !== null) {
      const slot = policy.signalNames.indexOf(name);
      if (slot >= 0) signals[slot] = Number(value);
    }
  }
  return { signals, context };
}

/** The leaf of an index that `decide` returned. */
export function leafAt(policy: CompiledPolicy, index: number): Leaf {
  const leaf = policy.leaves[index];
  if (leaf === undefined) throw new Error(`leaf ${index} is not in the policy ${policy.document.name}`);
  return leaf;
}

function signalReader(
  policy: CompiledPolicy,
  signals: Float64Array,
  context: Context | undefined,
): SignalReader {
  const slots = new Map(policy.signalNames.map((name, slot) => [name, slot]));
  return {
    number: (name) => signals[slots.get(name) ?? -1] ?? Number.NaN,
    text: (name) => readText(context, name),
  };
}

function readValue(policy: CompiledPolicy, reader: SignalReader, name: string): SignalValue | null {
  const type = policy.document.signals.get(name);
  if (type === 'string') return reader.text(name) ?? null;
  const value = reader.number(name);
  if (Number.isNaN(value)) return null;
  return type === 'bool' && (value === 0 || value === 1) ? value === 1 : value;
}

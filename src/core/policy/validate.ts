import { listNames } from '../errors.ts';
import { type CompiledPolicy, compilePolicy } from './compile.ts';
import { type LeafBranch, leafBranches, type PolicyDocument, type SignalType } from './document.ts';
import { explainDecision, formatExplanation, leafAt, toSignalVector } from './explain.ts';
import { type Fleet, REFERENCE_FLEET } from './fleet.ts';
import { didYouMean, nearestName } from './nearest.ts';
import type { Context } from './operand.ts';
import { type PolicyProblem, PROBLEMS_MAX } from './problem.ts';
import { findUnreachable } from './reach.ts';

/** A signal that the extractor computes. */
export interface KnownSignal {
  readonly name: string;
  readonly type: SignalType;
  /** What it declares to cost a request, microseconds; its microbenchmark holds it to that. */
  readonly costBudgetUs: number;
}

/** What a signal may cost a request, microseconds: the published figure for a new signal. */
export const SIGNAL_COST_US_MAX = 100;

/**
 * What is wrong with a policy that parses: targets that the fleet lacks, branches that nothing reaches, signals of the wrong
 * type or too dear, golden tests that fail. Errors refuse the policy; warnings don't. At most 50 of each.
 *
 * @param known the signals that the extractor computes; without them neither cost nor type is checked
 * @param texts the names of the texts that requests may carry; without them any may
 */
export function validatePolicy(
  document: PolicyDocument,
  fleet: Fleet = REFERENCE_FLEET,
  known: readonly KnownSignal[] = [],
  texts?: ReadonlySet<string>,
): PolicyProblem[] {
  const found = new Findings(document);
  for (const leaf of leafBranches(document.tree)) checkTarget(found, leaf, fleet);
  checkReachability(found, document);
  checkSignals(found, document, known);
  if (texts !== undefined) checkTexts(found, document, texts);
  runGoldenTests(found, compilePolicy(document, { fleet: withTargetsOf(document, fleet) }));
  return found.problems;
}

/** What is wrong with the targets and the signals alone: also of a document that has other problems. What could not be read is passed over. */
export function validateParts(
  document: PolicyDocument,
  fleet: Fleet,
  known: readonly KnownSignal[] = [],
  texts?: ReadonlySet<string>,
): PolicyProblem[] {
  const found = new Findings(document);
  for (const leaf of leafBranches(document.tree)) checkTarget(found, leaf, fleet);
  if (texts !== undefined) checkTexts(found, document, texts);
  // A condition that cannot be read may read any of them.
  checkSignals(found, document, known, { allAreRead: true });
  return found.problems;
}

/** Which leaf a request ends in is not for targets to say: golden tests run whatever the fleet lacks. */
function withTargetsOf(document: PolicyDocument, fleet: Fleet): Fleet {
  const lacking = leafBranches(document.tree)
    .map(({ to }) => to.accelerator)
    .filter((name) => !fleet.accelerators.has(name));
  if (lacking.length === 0) return fleet;
  const any = { kernels: ['any'], memories: ['any'], pools: [] };
  const accelerators = new Map([...fleet.accelerators, ...lacking.map((name) => [name, any] as const)]);
  return { ...fleet, accelerators };
}

class Findings {
  readonly problems: PolicyProblem[] = [];
  readonly #document: PolicyDocument;

  constructor(document: PolicyDocument) {
    this.#document = document;
  }

  /** Errors and warnings are counted apart: no number of warnings may hide an error. */
  isFull(severity: PolicyProblem['severity']): boolean {
    return this.problems.filter((problem) => problem.severity === severity).length >= PROBLEMS_MAX;
  }

  add(
    severity: PolicyProblem['severity'],
    path: string,
    what: string,
    detail: { value?: unknown; allowed?: string; advice?: string } = {},
  ): void {
    if (!this.isFull(severity))
      this.problems.push({ severity, path, position: this.#document.positions.get(path), what, ...detail });
  }
}

function checkTarget(found: Findings, leaf: LeafBranch, fleet: Fleet): void {
  const { accelerator, kernel, memory } = leaf.to;
  const path = `${leaf.path}.to`;
  const able = checkName(
    found,
    `${path}.accelerator`,
    'accelerator',
    accelerator,
    fleet.accelerators.keys(),
    fleet,
  )
    ? fleet.accelerators.get(accelerator)
    : undefined;
  if (able !== undefined) {
    checkName(found, `${path}.kernel`, `kernel of ${accelerator}`, kernel, able.kernels, fleet);
    if (memory !== undefined) {
      checkName(found, `${path}.memory`, `memory domain of ${accelerator}`, memory, able.memories, fleet);
    }
  }
  leaf.fallback.forEach((name, index) => {
    const here = `${leaf.path}.fallback[${index}]`;
    if (!checkName(found, here, 'accelerator', name, fleet.accelerators.keys(), fleet)) return;
    const kernels = fleet.accelerators.get(name)?.kernels ?? [];
    if (kernel === UNREAD || kernels.includes(kernel)) return;
    const allowed = kernels.join(', ');
    found.add('warning', here, `the fallback lacks the kernel ${kernel}, so it would run another`, {
      value: name,
      allowed,
    });
  });
}

/** What the parser leaves of a name that it reported. */
const UNREAD = '';

function checkName(
  found: Findings,
  path: string,
  what: string,
  name: string,
  known: Iterable<string>,
  fleet: Fleet,
): boolean {
  if (name === UNREAD) return false;
  const names = [...known];
  if (names.includes(name)) return true;
  const allowed = listNames(names);
  found.add('error', path, `unknown ${what} in the fleet "${fleet.name}"`, {
    value: name,
    allowed,
    ...didYouMean(name, names),
  });
  return false;
}

function checkReachability(found: Findings, document: PolicyDocument): void {
  const tuned = new Map(
    document.tunables.map(({ name, default: initial }) => [name, document.tuned.get(name) ?? initial]),
  );
  const { unreachable, complete } = findUnreachable(document.tree, tuned);
  for (const { branch, takenBy } of unreachable) {
    const what =
      takenBy.length === 0
        ? `no request reaches the branch ${branch.id}: its conditions contradict each other`
        : `no request reaches the branch ${branch.id}: ${listNames(takenBy)} takes all of them before`;
    const path = branch.when === undefined || takenBy.length > 0 ? branch.path : `${branch.path}.when`;
    found.add('error', path, what, branch.when === undefined ? {} : { value: branch.when.text });
  }
  if (!complete) {
    found.add('warning', 'tree', 'the policy is too large to look at every combination of its conditions', {
      advice: 'Branches that no request reaches may have been overlooked.',
    });
  }
}

function checkSignals(
  found: Findings,
  document: PolicyDocument,
  known: readonly KnownSignal[],
  { allAreRead = false } = {},
): void {
  const byName = new Map(known.map((signal) => [signal.name, signal]));
  const read = new Set(allAreRead ? document.signals.keys() : readSignals(document));
  for (const [name, type] of document.signals) {
    const path = `signals.${name}`;
    if (!read.has(name)) found.add('warning', path, 'no condition reads this signal', { value: name });
    const signal = byName.get(name);
    if (signal !== undefined) {
      checkKnownSignal(found, path, type, signal, read.has(name));
      continue;
    }
    const near = nearestName(name, byName.keys());
    if (near === undefined) continue;
    const advice = `It is taken for a hint of the producer's. Did you mean "${near}"?`;
    found.add('warning', path, 'not a signal that the extractor computes', { value: name, advice });
  }
}

/** A text that no request carries is missing in all of them: its branch is never taken, though golden tests pass. */
function checkTexts(found: Findings, document: PolicyDocument, texts: ReadonlySet<string>): void {
  for (const [name, type] of document.signals) {
    if (type !== 'string' || texts.has(name)) continue;
    found.add('warning', `signals.${name}`, 'no request carries this text to a router', {
      value: name,
      allowed: listNames(texts),
      advice: 'Texts of the context are kept that limits.contextKeys names.',
    });
  }
}

function checkKnownSignal(
  found: Findings,
  path: string,
  type: SignalType,
  known: KnownSignal,
  read: boolean,
): void {
  if (type !== known.type && !(type === 'double' && known.type === 'int')) {
    found.add('error', path, 'the signal has another type', { value: type, allowed: known.type });
  }
  if (read && known.costBudgetUs > SIGNAL_COST_US_MAX) {
    const allowed = `at most ${SIGNAL_COST_US_MAX} µs a request`;
    found.add('error', path, 'the signal costs too much', { value: `${known.costBudgetUs} µs`, allowed });
  }
}

function* readSignals({ tree }: Pick<PolicyDocument, 'tree'>): Generator<string> {
  for (const branch of tree) {
    yield* branch.when?.reads ?? [];
    if (branch.kind === 'tree') yield* readSignals(branch);
  }
}

function runGoldenTests(found: Findings, policy: CompiledPolicy): void {
  const { tests } = policy.document;
  for (const test of tests) {
    const { signals, context } = toSignalVector(policy, test.signals);
    const leaf = leafAt(policy, policy.decide(signals, context));
    if (leaf.id === test.leaf || found.isFull('error')) continue;
    found.add(
      'error',
      test.path,
      `a golden test fails: the policy takes it to the leaf ${leaf.id}, the test says ${test.leaf}`,
      {
        advice: explainShortly(policy, signals, context),
      },
    );
  }
  const tested = new Set(tests.map((test) => test.leaf));
  const untested = policy.leaves.filter((leaf) => !tested.has(leaf.id)).map((leaf) => leaf.id);
  if (untested.length > 0) {
    found.add('warning', 'tests', 'no golden test ends in these leaves', { value: listNames(untested) });
  }
}

/** The branches that a request ends by say the most; a policy may have thousands before. */
const STEPS_TOLD_MAX = 8;

function explainShortly(policy: CompiledPolicy, signals: Float64Array, context: Context): string {
  const { leaf, steps } = explainDecision(policy, signals, context);
  const told = formatExplanation({ leaf, steps: steps.slice(-STEPS_TOLD_MAX) });
  const before = steps.length - STEPS_TOLD_MAX;
  return [...(before > 0 ? [`${before} branches were not taken`] : []), ...told].join('; ');
}

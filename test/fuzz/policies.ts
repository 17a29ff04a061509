import { createHash } from 'node:crypto';
import { Parser } from 'yaml';
import { type CompiledPolicy, compilePolicy, vectorSignals } from '../../src/core/policy/compile.ts';
import { CONDITION_LIMITS } from '../../src/core/policy/condition.ts';
import type { Branch, PolicyDocument } from '../../src/core/policy/document.ts';
import { nextAbove, nextBelow } from '../../src/core/policy/double.ts';
import { explainDecision, leafAt } from '../../src/core/policy/explain.ts';
import type { Condition, Numeric } from '../../src/core/policy/expression.ts';
import { REFERENCE_FLEET } from '../../src/core/policy/fleet.ts';
import { readPolicyDocument } from '../../src/core/policy/parse.ts';
import { DocumentError, describeProblem, type PolicyProblem } from '../../src/core/policy/problem.ts';
import { DOCUMENT_LIMITS } from '../../src/core/policy/source.ts';
import { tunedChild } from '../../src/core/policy/tuned-child.ts';
import { validateParts, validatePolicy } from '../../src/core/policy/validate.ts';
import type { Generator } from '../../src/core/random/generator.ts';
import { SIGNALS } from '../../src/core/signals/extract.ts';
import { type Account, type Fuzzer, isPlain, runFuzzer } from './harness.ts';
import { oneIn, pick } from './pick.ts';
import { slip, widen } from './policy-slips.ts';
import { bytesOf, damage, textOf } from './policy-text.ts';
import { policyTree } from './policy-tree.ts';

/**
 * Fuzzing of the policy parser: documents of the policy's grammar, with slips in their trees and damage in their text. Whatever is refused is refused with
 * problems; whatever is accepted is validated, compiled, decides every request, and is explained as it decides.
 *
 *     node test/fuzz/policies.ts --inputs 1000000 --seed 1 --processes 2
 */

const DECISIONS = 4;

/** Tokens that yaml's parser was given, for the input at hand. */
let tokens = 0;
const { next } = Parser.prototype;
Parser.prototype.next = function counted(source: string) {
  tokens += 1;
  return next.call(this, source);
};

interface Input {
  readonly text: string;
  readonly source: string | Uint8Array;
}

function inputOf(draw: Generator): Input {
  const tree = policyTree(draw);
  const kind = draw.below(20);
  for (let left = kind < 7 ? 0 : 1 + draw.below(2); left > 0 && kind < 15; left--) slip(draw, tree);
  if (oneIn(draw, 2_000)) widen(draw, tree);
  let text = textOf(draw, tree);
  if (kind >= 15) {
    const other = (): string => textOf(draw, policyTree(draw));
    for (let left = 1 + draw.below(3); left > 0; left--) text = damage(draw, text, other);
  }
  return { text, source: oneIn(draw, 2) ? text : bytesOf(draw, text) };
}

function readOne(draw: Generator, { text, source }: Input, account: Account): void {
  tokens = 0;
  const read = attempt(() => readPolicyDocument(source));
  account.work('tokens', tokens, 2 * text.length + 64);
  if (read instanceof DocumentError) {
    account.outcome('no document');
    checkProblems(read.problems, account);
    return;
  }
  const { document, problems } = read;
  if (problems.some(({ path }) => path === '' || path === 'apiVersion' || path === 'kind'))
    account.outcome('of another kind');
  else account.past();
  if (document !== undefined) checkWork(document, account);
  if (problems.length > 0) {
    account.outcome('refused by the parser');
    checkProblems(problems, account);
    if (document !== undefined) checkProblems(validateParts(document, REFERENCE_FLEET), account);
    return;
  }
  account.expect(document !== undefined, 'no problem, and no document');
  if (document !== undefined) checkAccepted(draw, source, document, account);
}

/** Only a refusal is a way to refuse. */
function attempt<T>(run: () => T): T | DocumentError {
  try {
    return run();
  } catch (error) {
    if (error instanceof DocumentError && error.code === 'INVALID_POLICY') return error;
    throw error;
  }
}

function checkProblems(problems: readonly PolicyProblem[], account: Account): void {
  account.work('problems', problems.length);
  for (const problem of problems) account.work('characters of a problem', describeProblem(problem).length);
}

function checkWork({ positions, tree }: PolicyDocument, account: Account): void {
  account.work('nodes', positions.size);
  for (const condition of conditionsOf(tree)) account.work('nodes of a condition', sizeOf(condition));
}

function checkAccepted(
  draw: Generator,
  source: Input['source'],
  document: PolicyDocument,
  account: Account,
): void {
  const found = validatePolicy(document, REFERENCE_FLEET, SIGNALS);
  checkProblems(found, account);
  const isValid = found.every(({ severity }) => severity === 'warning');
  account.outcome(isValid ? 'accepted' : 'refused by validation');
  if (!isValid && found.some(({ path }) => path.includes('.to.'))) return;
  account.expect(isPlain(document), 'a document with a prototype of its own');
  const policy = compilePolicy(document, optionsOf(draw, document));
  for (let left = DECISIONS; left > 0; left--) checkDecision(draw, policy, account);
  if (oneIn(draw, 16)) checkDigest(draw, source, document, account);
}

/** As a router compiles, whose vector has more signals, fewer, and in another order; or as the policy declares them. */
function optionsOf(draw: Generator, document: PolicyDocument): Parameters<typeof compilePolicy>[1] {
  const names = vectorSignals(document);
  const shuffled = names.map((name) => [draw.next(), name] as const).sort(([a], [b]) => a - b);
  const signalNames = shuffled.flatMap(([, name]) =>
    oneIn(draw, 8) ? ['toString', name] : oneIn(draw, 12) ? [] : [name],
  );
  const tuned = new Map(
    document.tunables
      .filter(() => oneIn(draw, 2))
      .map(({ name, min, max }) => [name, pick(draw, [min, max])]),
  );
  return { tuned, ...(oneIn(draw, 2) ? {} : { signalNames }) };
}

const VALUES = [
  ...[
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    0,
    -0,
    1,
    2,
    0.5,
    1.5,
    -1,
    3,
    256,
    1e308,
    5e-324,
  ],
  ...[Number.MAX_SAFE_INTEGER, Number.MAX_VALUE, 0.1, 100],
];
const TEXTS = ['eu', 'us', 'ap', '', 'toString', '__proto__', 'a"b', 'ü\u{1F600}'];

function checkDecision(draw: Generator, policy: CompiledPolicy, account: Account): void {
  const signals = Float64Array.from(policy.signalNames, () => signalOf(draw));
  const context = contextOf(draw, policy);
  const place = policy.decide(signals, context);
  const isLeaf = Number.isInteger(place) && place >= 0 && place < policy.leaves.length;
  account.expect(isLeaf, `decided for leaf ${place} of ${policy.leaves.length}`);
  if (!isLeaf) return;
  const explained = explainDecision(policy, signals, context);
  account.expect(
    explained.leaf === leafAt(policy, place).id,
    `decided for ${policy.leaves[place]?.id}, explained as ${explained.leaf} for ${signals.join()} ${JSON.stringify(context)}`,
  );
  account.expect(isPlain(explained), 'an explanation with a prototype of its own');
  account.work('steps', explained.steps.length);
}

function signalOf(draw: Generator): number {
  if (oneIn(draw, 8)) return (draw.next() - 0.5) * 2 ** (draw.below(80) - 20);
  const value = pick(draw, VALUES);
  return oneIn(draw, 8) ? pick(draw, [nextAbove, nextBelow])(value) : value;
}

function contextOf(draw: Generator, { document }: CompiledPolicy): Record<string, string> | undefined {
  if (oneIn(draw, 6)) return undefined;
  const context: Record<string, string> = oneIn(draw, 2) ? {} : Object.create(null);
  for (const [name, type] of document.signals) {
    if (type === 'string' && !oneIn(draw, 4)) context[name] = pick(draw, TEXTS);
  }
  return context;
}

/** The same bytes mean the same, whoever reads them and however often; a child by tuning means the same but for what was tuned. */
function checkDigest(
  draw: Generator,
  source: Input['source'],
  document: PolicyDocument,
  account: Account,
): void {
  const digest = digestOf(document);
  const text = typeof source === 'string' ? source : Buffer.from(source).toString();
  for (const same of [text, Buffer.from(text)]) {
    const again = readPolicyDocument(same).document;
    account.expect(
      again !== undefined && digestOf(again) === digest,
      'read again, the same text means something else',
    );
  }
  const change = {
    parent: `sha256:${'12'.repeat(32)}`,
    version: document.version + 1,
    tuned: new Map(document.tunables.filter(() => oneIn(draw, 2)).map(({ name, max }) => [name, max])),
  };
  const child = attempt(() => tunedChild(text, change));
  account.outcome(child instanceof DocumentError ? 'child refused' : 'child');
  if (child instanceof DocumentError) return;
  const read = readPolicyDocument(child).document;
  const { parent, version, tuned } = change;
  const expected = digestOf({ ...document, parent, version, tuned, expect: undefined });
  account.expect(
    read !== undefined && digestOf(read) === expected,
    `the child means something else: ${child}`,
  );
  account.expect(tunedChild(child, change) === child, `the child of a child differs from it: ${child}`);
}

/** Of what a document says, wherever it stands in the text. */
function digestOf({ positions: _, ...said }: PolicyDocument): string {
  const json = JSON.stringify(said, (_key, value: unknown) => {
    if (value instanceof Map) return [...value].sort();
    if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
    return Object.is(value, -0) ? '-0' : value;
  });
  return createHash('sha256').update(json).digest('hex');
}

function* conditionsOf(tree: readonly Branch[]): Iterable<Condition> {
  for (const branch of tree) {
    if (branch.when !== undefined) yield branch.when.condition;
    if (branch.kind === 'tree') yield* conditionsOf(branch.tree);
  }
}

function sizeOf(condition: Condition): number {
  switch (condition.kind) {
    case 'not':
      return 1 + sizeOf(condition.operand);
    case 'and':
    case 'or':
      return condition.operands.reduce((sum, operand) => sum + sizeOf(operand), 1);
    case 'compare':
      return 1 + numericSize(condition.left) + numericSize(condition.right);
    case 'member':
      return 1 + numericSize(condition.operand) + condition.values.length;
    case 'text-member':
      return 1 + condition.values.length;
    default:
      return 1;
  }
}

function numericSize(expression: Numeric): number {
  switch (expression.kind) {
    case 'negate':
      return 1 + numericSize(expression.operand);
    case 'arithmetic':
      return 1 + numericSize(expression.left) + numericSize(expression.right);
    default:
      return 1;
  }
}

const fuzzer: Fuzzer = {
  name: 'policies',
  batch: 1_000,
  heapGrowthMax: 128 * 1024 * 1024,
  workMax: {
    nodes: DOCUMENT_LIMITS.nodes,
    'nodes of a condition': CONDITION_LIMITS.nodes,
    steps: DOCUMENT_LIMITS.nodes,
    problems: 50,
    'characters of a problem': 2_000,
  },
  open: async () => (draw, count, account) => {
    for (let left = count; left > 0; left--) {
      const input = inputOf(draw);
      account.input(Buffer.from(input.text), () => readOne(draw, input, account));
    }
  },
};

await runFuzzer(fuzzer);

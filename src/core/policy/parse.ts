import { listNames } from '../errors.ts';
import {
  API_VERSION,
  DEFAULT_ROLLOUT,
  type Expectation,
  type GoldenTest,
  type ModelChoice,
  POLICY_VERSION_MAX,
  type PolicyDocument,
  ROLLOUT_UNITS,
  type RolloutPlan,
  SIGNAL_TYPES,
  type SignalType,
  type SignalValue,
  type Tunable,
} from './document.ts';
import { didYouMean } from './nearest.ts';
import { readGuardrails } from './parse-guardrails.ts';
import { readModels } from './parse-models.ts';
import { NAME, NAME_ALLOWED, TreeReader } from './parse-tree.ts';
import { DocumentError, type PolicyProblem, type Position } from './problem.ts';
import { DocumentReader } from './reader.ts';
import { readSource, type SourceNode } from './source.ts';

const SIGNAL_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
/** What a condition would read as something else: ours, then CEL's reserved words. */
const RESERVED_WORDS: ReadonlySet<string> = new Set(
  (
    'tune context true false null in as break const continue else for function if import let loop package namespace ' +
    'return var void while'
  ).split(' '),
);
const RAMP_STEPS_MAX = 16;

/**
 * Reads a routing policy, as YAML or JSON. docs/policy-language.md says what it may hold.
 *
 * @param input at most 64 KB, 4 096 nodes, 32 levels
 * @throws DocumentError INVALID_POLICY with every problem found (at most 50), each with its path, line and column
 */
export function parsePolicy(input: string | Uint8Array): PolicyDocument {
  const { document, problems } = readPolicyDocument(input);
  if (document === undefined || problems.length > 0) throw new DocumentError('INVALID_POLICY', problems);
  return document;
}

/**
 * As much of a policy as can be read, with everything that is wrong in it: only one without problems may be used, the others can be checked further.
 *
 * @throws DocumentError INVALID_POLICY for what is no document at all, or has 50 problems and perhaps more
 */
export function readPolicyDocument(input: string | Uint8Array): {
  document: PolicyDocument | undefined;
  problems: readonly PolicyProblem[];
} {
  const root = readSource(input, 'INVALID_POLICY');
  const reader = new DocumentReader('INVALID_POLICY');
  const document = readPolicy(reader, root);
  return { document, problems: reader.problems };
}

function readPolicy(reader: DocumentReader, root: SourceNode): PolicyDocument | undefined {
  const fields = reader.fields(root, {
    apiVersion: 'required',
    kind: 'required',
    name: 'required',
    version: 'required',
    parent: 'optional',
    signals: 'optional',
    tuned: 'optional',
    models: 'optional',
    expect: 'optional',
    tree: 'required',
    tests: 'optional',
    rollout: 'optional',
  });
  if (fields === undefined) return undefined;
  if (fields.apiVersion !== undefined) reader.oneOf(fields.apiVersion, [API_VERSION]);
  if (fields.kind !== undefined) reader.oneOf(fields.kind, ['RoutingPolicy']);
  const name = fields.name === undefined ? undefined : reader.text(fields.name, NAME, NAME_ALLOWED);
  const version =
    fields.version === undefined
      ? undefined
      : reader.number(fields.version, 0, POLICY_VERSION_MAX, 'whole number');
  const parent =
    fields.parent === undefined
      ? undefined
      : reader.text(fields.parent, DIGEST, 'sha256: and 64 hexadecimal digits');
  const signals =
    fields.signals === undefined ? new Map<string, SignalType>() : readSignals(reader, fields.signals);
  const branches = new TreeReader(reader, signals);
  const tree = fields.tree === undefined ? [] : branches.tree(fields.tree);
  const tuned =
    fields.tuned === undefined
      ? new Map<string, number>()
      : readTuned(reader, fields.tuned, branches.tunables);
  const models =
    fields.models === undefined ? new Map<string, ModelChoice>() : readModels(reader, fields.models);
  const expect =
    fields.expect === undefined ? undefined : readExpectation(reader, fields.expect, branches.leafIds);
  const tests = fields.tests === undefined ? [] : readTests(reader, fields.tests, signals, branches.leafIds);
  const rollout = fields.rollout === undefined ? DEFAULT_ROLLOUT : readRollout(reader, fields.rollout);
  const tunables = [...branches.tunables.values()];
  const positions = new Map(positionsOf(root));
  return {
    name: name ?? '',
    version: version ?? 0,
    parent,
    signals,
    tunables,
    tuned,
    models,
    expect,
    tree,
    tests,
    rollout,
    positions,
  };
}

function readSignals(reader: DocumentReader, node: SourceNode): ReadonlyMap<string, SignalType> {
  const signals = new Map<string, SignalType>();
  for (const [name, value] of reader.map(node) ?? []) {
    const type = reader.oneOf(value, SIGNAL_TYPES);
    if (!SIGNAL_NAME.test(name) || RESERVED_WORDS.has(name)) {
      reader.report(value, 'not a name that a condition could read', {
        value: name,
        allowed: 'a letter, then letters, digits, "_"; at most 64; no reserved word',
      });
    } else if (type !== undefined) signals.set(name, type);
  }
  return signals;
}

function readTuned(
  reader: DocumentReader,
  node: SourceNode,
  tunables: ReadonlyMap<string, Tunable>,
): ReadonlyMap<string, number> {
  const tuned = new Map<string, number>();
  for (const [name, value] of reader.map(node) ?? []) {
    const tunable = tunables.get(name);
    if (tunable === undefined) {
      reader.report(value, 'no condition has a tunable constant of this name', {
        value: name,
        allowed: listNames(tunables.keys(), 'none is in the tree'),
        ...didYouMean(name, tunables.keys()),
      });
      continue;
    }
    const number = reader.number(value, tunable.min, tunable.max);
    if (number !== undefined) tuned.set(name, number);
  }
  return tuned;
}

function readExpectation(
  reader: DocumentReader,
  node: SourceNode,
  leafIds: readonly string[],
): Expectation | undefined {
  const fields = reader.fields(node, { changedShare: 'optional', leaves: 'optional' });
  if (fields === undefined) return undefined;
  const leaves =
    fields.leaves === undefined
      ? undefined
      : (reader.list(fields.leaves) ?? []).flatMap((item) => reader.oneOf(item, leafIds) ?? []);
  return {
    changedShare: fields.changedShare === undefined ? undefined : readShare(reader, fields.changedShare),
    leaves,
  };
}

function readShare(reader: DocumentReader, node: SourceNode): readonly [number, number] | undefined {
  const [low, high, ...rest] = (reader.list(node) ?? []).map(
    (item) => reader.number(item, 0, 1) ?? Number.NaN,
  );
  if (low !== undefined && high !== undefined && rest.length === 0 && !(low > high)) return [low, high];
  return reader.report(node, 'a share is given by its bounds', { allowed: '[lowest, highest], each 0 … 1' });
}

function readTests(
  reader: DocumentReader,
  node: SourceNode,
  signals: ReadonlyMap<string, SignalType>,
  leafIds: readonly string[],
): GoldenTest[] {
  return (reader.list(node) ?? []).flatMap((item) => {
    const fields = reader.fields(item, { signals: 'required', leaf: 'required' });
    if (fields?.signals === undefined || fields.leaf === undefined) return [];
    const leaf = reader.oneOf(fields.leaf, leafIds);
    const values = new Map<string, SignalValue>();
    for (const [name, value] of reader.map(fields.signals) ?? []) {
      const read = readSignalValue(reader, value, name, signals);
      if (read !== undefined) values.set(name, read);
    }
    return leaf === undefined ? [] : [{ signals: values, leaf, path: item.path }];
  });
}

function readSignalValue(
  reader: DocumentReader,
  node: SourceNode,
  name: string,
  signals: ReadonlyMap<string, SignalType>,
): SignalValue | undefined {
  const type = signals.get(name);
  const value = node.kind === 'scalar' ? node.value : undefined;
  switch (type) {
    case undefined:
      return reader.report(node, 'a signal that is not declared under `signals`', {
        value: name,
        allowed: listNames(signals.keys(), 'none is declared'),
        ...didYouMean(name, signals.keys()),
      });
    case 'bool':
      return reader.flag(node);
    case 'string':
      return typeof value === 'string' ? value : reader.report(node, 'the signal is a string', { value });
    case 'int':
      return reader.number(node, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 'whole number');
    case 'double':
      return typeof value === 'number'
        ? value
        : reader.report(node, 'the signal is a number', { value, allowed: 'a number, .nan, .inf' });
    default:
      return type satisfies never;
  }
}

function readRollout(reader: DocumentReader, node: SourceNode): RolloutPlan {
  const fields = reader.fields(node, {
    shadow: 'optional',
    canary: 'optional',
    ramp: 'optional',
    rampDwell: 'optional',
    unit: 'optional',
    guardrails: 'optional',
  });
  const canary =
    fields?.canary === undefined
      ? undefined
      : reader.fields(fields.canary, { percent: 'optional', dwell: 'optional' });
  const { canary: defaults } = DEFAULT_ROLLOUT;
  const percent = (canary?.percent && reader.number(canary.percent, 0.01, 99)) ?? defaults.percent;
  return {
    shadowMs: (fields?.shadow && reader.durationMs(fields.shadow)) ?? DEFAULT_ROLLOUT.shadowMs,
    canary: { percent, dwellMs: (canary?.dwell && reader.durationMs(canary.dwell)) ?? defaults.dwellMs },
    rampPercents: fields?.ramp
      ? readRamp(reader, fields.ramp, percent)
      : DEFAULT_ROLLOUT.rampPercents.filter((step) => step > percent),
    rampDwellMs: (fields?.rampDwell && reader.durationMs(fields.rampDwell)) ?? DEFAULT_ROLLOUT.rampDwellMs,
    unit: (fields?.unit && reader.oneOf(fields.unit, ROLLOUT_UNITS)) ?? DEFAULT_ROLLOUT.unit,
    guardrails: fields?.guardrails ? readGuardrails(reader, fields.guardrails) : DEFAULT_ROLLOUT.guardrails,
  };
}

function readRamp(reader: DocumentReader, node: SourceNode, canaryPercent: number): number[] {
  const items = reader.list(node) ?? [];
  const percents = items.flatMap((item) => reader.number(item, 0.01, 99) ?? []);
  const rising = percents.every((percent, index) => percent > (percents[index - 1] ?? canaryPercent));
  if (!rising || items.length > RAMP_STEPS_MAX) {
    reader.report(node, 'a ramp rises from step to step, and from the canary', {
      value: percents,
      allowed: `at most ${RAMP_STEPS_MAX} percentages, each above the one before`,
    });
  }
  return percents;
}

function* positionsOf(node: SourceNode): Generator<[string, Position]> {
  yield [node.path, node.position];
  if (node.kind === 'scalar') return;
  for (const child of node.kind === 'list' ? node.items : node.entries.values()) yield* positionsOf(child);
}

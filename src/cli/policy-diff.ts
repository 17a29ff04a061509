import { Command } from 'commander';
import { loadSettings } from '../config/load-settings.ts';
import { readUserFile } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
import { type CompiledPolicy, compilePolicy, vectorSignals } from '../core/policy/compile.ts';
import {
  type ChangedTarget,
  diffPolicies,
  type Movement,
  type PolicyDiff,
  unexpectedChanges,
} from '../core/policy/diff.ts';
import type { SignalValue } from '../core/policy/document.ts';
import { type SignalVector, toSignalVector } from '../core/policy/explain.ts';
import type { Fleet } from '../core/policy/fleet.ts';
import { poolsOf } from '../core/policy/fleet-pools.ts';
import { compileChecked } from '../wiring/policy-files.ts';
import type { CliContext } from './context.ts';
import {
  type Change,
  changedTargetLines,
  changeLines,
  documentChanges,
  leafShareLines,
  leafShares,
  percent,
} from './policy-changes.ts';
import { fleetText, readNamedFleet } from './policy-check.ts';
import { readCorpus } from './policy-corpus.ts';
import { tableLines } from './table.ts';

interface DiffFlags {
  corpus?: string;
  fleet?: string;
  json: boolean;
}

/** `millrace policy diff <before> <after>`: what would go elsewhere. */
export function diffCommand(context: CliContext): Command {
  return new Command('diff')
    .description(
      'Show which requests of a corpus another version of a policy would send elsewhere: from pool to pool, from leaf to leaf; and what else it changes',
    )
    .argument('<before>', 'policy, YAML or JSON')
    .argument('<after>', 'the policy that may take its place')
    .option(
      '--corpus <file>',
      'requests, one JSON object per line: {"signals": {"sparsityRatio": 0.8}, "context": {"surface": "feed"}}',
    )
    .option('--fleet <file>', 'fleet of their targets (default: the one of the settings)')
    .option('--json', 'print one JSON object instead of text', false)
    .addHelpText(
      'after',
      `
Both policies are checked, then decide every request of the corpus. millrace capture records one off live traffic; a line may have other fields
beside signals and context. Without --corpus the golden tests of both are the corpus: that shows what may change, not how often.

Targets are accelerator/kernel/memory, and a variant where the leaf insists on one. Leaves are shown with their shares by both policies, whether or
not anything goes elsewhere; model versions, targets and fallbacks that differ are named, also where no request of the corpus meets them.

Where the second policy says what it expects (expect: changedShare, leaves), and the corpus shows something else, the exit code is 1.

Examples:
  millrace capture --out requests.jsonl --max 10000
  millrace policy diff live.yaml next.yaml --corpus requests.jsonl
  millrace policy diff examples/policies/starter.yaml my-policy.yaml --json | jq .changedShare`,
    )
    .action((before: string, after: string, flags: DiffFlags) => diff(context, before, after, flags));
}

function diff(context: CliContext, beforeFile: string, afterFile: string, flags: DiffFlags): void {
  const loaded = loadSettings(context.environment, { fleet: flags.fleet });
  const fleet = readNamedFleet(loaded);
  const [before, after] = compileAlike(readChecked(beforeFile, fleet), readChecked(afterFile, fleet), fleet);
  const corpus =
    flags.corpus === undefined ? goldenTests(before, after) : readCorpus(flags.corpus, before, after);
  const found = diffPolicies(before, after, corpus);
  const shares = leafShares(before, after, found.leaves);
  const changes = documentChanges(before, after);
  const { expect } = after.document;
  const unexpected =
    expect === undefined || flags.corpus === undefined ? [] : unexpectedChanges(found, expect);
  if (unexpected.length > 0) context.exitCode = 1;
  if (flags.json) {
    context.stdout.write(
      `${JSON.stringify({ ...shownDiff(before, after, found, { fleet, unexpected, corpus: flags.corpus }), leafShares: shares, documentChanges: changes })}\n`,
    );
    return;
  }
  const where =
    flags.corpus ?? 'the golden tests of both (no --corpus: these say nothing about shares of real traffic)';
  const lines = [
    `${nameOf(before)} → ${nameOf(after)}, ${found.requests} requests of ${where}, on the fleet ${fleetText(fleet.name, loaded)}`,
    ...diffLines(found, changes, fleet),
    '',
    ...leafShareLines(shares, found.requests),
    ...unexpected.map((text) => `not as expected: ${text}`),
    ...(expect !== undefined && flags.corpus !== undefined && unexpected.length === 0
      ? ['as the policy expects']
      : []),
  ];
  context.stdout.write(`${lines.join('\n')}\n`);
}

/** A problem is told with the file that it is in: there are two. */
function readChecked(file: string, fleet: Fleet): CompiledPolicy {
  const bytes = readUserFile(file);
  try {
    return compileChecked(bytes, fleet);
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    throw new MillraceError('INVALID_POLICY', `${file}: ${error.message}`, {
      advice: `See millrace policy validate ${file}`,
      cause: error,
    });
  }
}

/** Both for one vector of signals, with everything that either declares. */
function compileAlike(
  before: CompiledPolicy,
  after: CompiledPolicy,
  fleet: Fleet,
): [CompiledPolicy, CompiledPolicy] {
  const signalNames = [...new Set([...vectorSignals(before.document), ...vectorSignals(after.document)])];
  return [
    compilePolicy(before.document, { fleet, signalNames }),
    compilePolicy(after.document, { fleet, signalNames }),
  ];
}

function goldenTests(before: CompiledPolicy, after: CompiledPolicy): SignalVector[] {
  const tests = new Map<string, ReadonlyMap<string, SignalValue>>();
  for (const { signals } of [...before.document.tests, ...after.document.tests])
    tests.set(JSON.stringify([...signals].sort()), signals);
  if (tests.size > 0) return [...tests.values()].map((signals) => toSignalVector(before, signals));
  throw new MillraceError('INVALID_CONFIG', 'neither policy has golden tests to compare them on', {
    allowed: '--corpus <file>',
  });
}

function diffLines(
  { requests, changed, changedShare, accelerators, leaves, changedTargets }: PolicyDiff,
  changes: readonly Change[],
  fleet: Fleet,
): string[] {
  const isElsewhere = ({ from, to }: Movement): boolean => from !== to;
  const moved = leaves.filter(isElsewhere);
  const told = changeLines(changes);
  if (changed === 0 && moved.length === 0 && told.length === 0)
    return [`nothing changes: all ${requests} go where they went`];
  return [
    changed === 0
      ? `no target changes: all ${requests} go where they went`
      : `${changed} of ${requests} (${percent(changedShare)}) get another target or variant`,
    ...told,
    ...(accelerators.some(isElsewhere) ? ['', ...matrixLines(accelerators, fleet)] : []),
    ...(changed === 0 ? [] : ['', ...changedTargetLines(changedTargets)]),
    ...renamedLines(moved, changedTargets),
  ];
}

/** Leaves that took another's place without changing a target. */
function renamedLines(moved: readonly Movement[], changedTargets: readonly ChangedTarget[]): string[] {
  const changed = new Set(changedTargets.map(({ leaf }) => `${leaf.from} ${leaf.to}`));
  const renamed = moved.filter(({ from, to }) => !changed.has(`${from} ${to}`));
  if (renamed.length === 0) return [];
  const rows = renamed.map(({ from, to, requests, share }) => [from, to, String(requests), percent(share)]);
  return ['', ...tableLines(['from leaf', 'to leaf', 'requests', 'share'], rows)];
}

/** Accelerator × accelerator with the pools of each, in requests; the diagonal stays. */
function matrixLines(movements: readonly Movement[], fleet: Fleet): string[] {
  const names = [...new Set(movements.flatMap(({ from, to }) => [from, to]))].sort();
  const counts = new Map(movements.map(({ from, to, requests }) => [`${from} ${to}`, requests]));
  const rows = names.map((from) => [
    `${from} (${poolsOf(fleet)(from).join(', ') || 'no pool'})`,
    ...names.map((to) => String(counts.get(`${from} ${to}`) ?? '·')),
  ]);
  return tableLines(['from ↓  to →', ...names], rows);
}

function shownDiff(
  before: CompiledPolicy,
  after: CompiledPolicy,
  found: PolicyDiff,
  { fleet, unexpected, corpus }: { fleet: Fleet; unexpected: readonly string[]; corpus: string | undefined },
): object {
  const pools = Object.fromEntries(
    [...fleet.accelerators.keys()].map((name) => [name, poolsOf(fleet)(name)]),
  );
  return {
    before: nameOf(before),
    after: nameOf(after),
    fleet: fleet.name,
    corpus: corpus ?? null,
    ...found,
    changedLeaves: Object.fromEntries(found.changedLeaves),
    pools,
    unexpected,
  };
}

function nameOf({ document: { name, version } }: CompiledPolicy): string {
  return `${name}@${version}`;
}

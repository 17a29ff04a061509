import { listNames, MillraceError } from '../errors.ts';
import type { Accelerator, Fleet } from '../policy/fleet.ts';
import type { AcceleratorProfile, SparseProfile } from './profile.ts';
import {
  type MeasuredTarget,
  measuredTargets,
  type Stretch,
  stretches,
  WORTH_A_BRANCH,
} from './stretches.ts';

/** A request of middling size: by it the accelerators that stand in are put in order. */
const MIDDLING_CANDIDATES = 128;
const FALLBACKS_MAX = 8;
const SPARSE = 'sparse';

interface Branch {
  readonly id: string;
  readonly comment: string;
  readonly when: string | undefined;
  readonly target: Pick<MeasuredTarget, 'accelerator' | 'kernel' | 'memory'>;
  /** Signals of a request that ends in it. */
  readonly example: string;
}

/**
 * A routing policy, as YAML, whose thresholds are what was measured: the sparse kernel below the share of non-zeros at which it overtakes the
 * dense one with every version that has it, and for the rest the fastest target by number of candidates. It knows of no load: which accelerator
 * has room is the router's to see (`fallback`).
 *
 * @throws MillraceError INVALID_CONFIG where a target is not in the fleet, or no model version is in all of the profiles
 */
export function starterPolicy(name: string, profiles: readonly AcceleratorProfile[], fleet: Fleet): string {
  for (const { accelerator, versions } of profiles)
    checkInFleet(
      fleet,
      accelerator,
      versions.flatMap(({ targets }) => targets),
    );
  const targets = measuredTargets(profiles);
  if (targets.length === 0)
    throw new MillraceError('INVALID_CONFIG', 'no model version was measured on all of the accelerators', {
      value: profiles.map(({ accelerator }) => accelerator).join(', '),
      advice: 'Profile the same model repository on each of them',
    });
  const largest = Math.max(...profiles.flatMap(({ versions }) => versions.map((one) => one.candidatesMax)));
  const branches = [...sparseBranch(profiles), ...branchesOf(stretches(targets, largest))];
  return policyText(name, profiles, branches, accelerators(targets));
}

/**
 * That the fleet has an accelerator, with such kernels and memory domains.
 * @throws MillraceError INVALID_CONFIG
 */
export function checkInFleet(
  fleet: Fleet,
  accelerator: string,
  targets: readonly { readonly kernel: string; readonly memory: string }[],
): void {
  const known = fleet.accelerators.get(accelerator);
  if (known === undefined)
    throw new MillraceError('INVALID_CONFIG', 'the fleet has no such accelerator', {
      value: accelerator,
      allowed: [...fleet.accelerators.keys()].join(', '),
      advice: 'Profile with --accelerator, or name another fleet',
    });
  for (const { kernel, memory } of targets) checkTarget(fleet, accelerator, known, kernel, memory);
}

function checkTarget(
  fleet: Fleet,
  accelerator: string,
  known: Accelerator,
  kernel: string,
  memory: string,
): void {
  const lacks = known.kernels.includes(kernel)
    ? known.memories.includes(memory)
      ? undefined
      : { what: 'memory domain', value: memory, allowed: known.memories }
    : { what: 'kernel', value: kernel, allowed: known.kernels };
  if (lacks === undefined) return;
  throw new MillraceError(
    'INVALID_CONFIG',
    `${accelerator} of fleet ${fleet.name} has no such ${lacks.what}`,
    {
      value: lacks.value,
      allowed: lacks.allowed.join(', '),
      advice: `Add it to the fleet: the workers have it`,
    },
  );
}

/** Where every version that has the kernel was faster by it: the smallest such share of non-zeros, of the accelerator that has the largest. */
function sparseBranch(profiles: readonly AcceleratorProfile[]): Branch[] {
  const found = profiles.flatMap(({ accelerator, versions }) => {
    const measured = versions.flatMap(({ family, version, sparse }) =>
      sparse.map((each) => ({ ...each, name: `${family}@${version}` })),
    );
    const tightest = measured.toSorted((a, b) => shareOf(a) - shareOf(b))[0];
    return tightest === undefined ? [] : [{ accelerator, tightest, share: roundedDown(shareOf(tightest)) }];
  });
  const widest = found.toSorted((a, b) => b.share - a.share)[0];
  if (widest === undefined || widest.share === 0) return [];
  const { accelerator, tightest, share } = widest;
  const from = percent(tightest.fasterFromZeros ?? 1);
  return [
    {
      id: 'few-non-zeros',
      comment: `The sparse kernel overtakes the dense one at ${from} zeros of the candidates' inputs (${tightest.name}, ${tightest.requests} × ${tightest.candidates} candidates, where it does so last).`,
      when: `nonZeroShare < ${share}`,
      target: { accelerator, kernel: SPARSE, memory: tightest.memory },
      example: `nonZeroShare: ${share / 2}`,
    },
  ];
}

/** 0 where it never was faster by enough: a ratio of about 1 may be noise. */
function shareOf({ compared, fasterBelowNonZeroShare }: SparseProfile): number {
  const isWorthIt = compared.some(({ ratio }) => ratio * (1 - WORTH_A_BRANCH) >= 1);
  return isWorthIt ? (fasterBelowNonZeroShare ?? 0) : 0;
}

/** To two digits: a threshold that was measured has no more. */
function roundedDown(share: number): number {
  return Math.floor(share * 100) / 100;
}

function branchesOf(found: readonly Stretch[]): Branch[] {
  return found.map(({ upTo, target }, n): Branch => {
    const size = upTo ?? MIDDLING_CANDIDATES;
    const next = found[n + 1]?.target;
    const comment =
      upTo === undefined || next === undefined
        ? `${shown(target)}: ${milliseconds(target, size)} for ${size} candidates.`
        : `Up to here ${shown(target)} is the fastest; at ${upTo + 1} candidates it takes ${milliseconds(target, upTo + 1)}, ${shown(next)} ${milliseconds(next, upTo + 1)}.`;
    if (upTo === undefined) return { id: 'rest', comment, when: undefined, target, example: '' };
    const example = `candidateCount: ${upTo}`;
    return { id: `up-to-${upTo}`, comment, when: `candidateCount <= ${upTo}`, target, example };
  });
}

/** Fastest first. */
function accelerators(targets: readonly MeasuredTarget[]): string[] {
  const byCost = targets.toSorted((a, b) => a.costMs(MIDDLING_CANDIDATES) - b.costMs(MIDDLING_CANDIDATES));
  return [...new Set(byCost.map(({ accelerator }) => accelerator))];
}

function policyText(
  name: string,
  profiles: readonly AcceleratorProfile[],
  branches: readonly Branch[],
  ordered: readonly string[],
): string {
  const signals = [
    ['nonZeroShare', 'double'],
    ['candidateCount', 'int'],
  ].filter(([signal]) => branches.some(({ when }) => when?.includes(signal ?? '')));
  const lines = [
    '# Thresholds that millrace profile measured: of one request at a time, and on machines with nothing else to do.',
    ...profiles.map((profile) => `# ${measuredOn(profile)}`),
    'apiVersion: millrace/v1',
    'kind: RoutingPolicy',
    `name: ${plain(name)}`,
    'version: 1',
    ...(signals.length === 0 ? [] : ['signals:', ...signals.map(([signal, type]) => `  ${signal}: ${type}`)]),
    'tree:',
    ...branches.flatMap((branch) => branchLines(branch, ordered)),
    'tests:',
    ...branches.map(({ id, example }) => `  - {signals: {${example}}, leaf: ${id}}`),
  ];
  return `${lines.join('\n')}\n`;
}

function branchLines({ id, comment, when, target }: Branch, ordered: readonly string[]): string[] {
  const { accelerator, kernel, memory } = target;
  const fallback = ordered.filter((each) => each !== accelerator).slice(0, FALLBACKS_MAX);
  return [
    `  # ${comment}`,
    `  - id: ${id}`,
    ...(when === undefined ? [] : [`    when: ${when}`]),
    `    to: {accelerator: ${plain(accelerator)}, kernel: ${plain(kernel)}, memory: ${plain(memory)}}`,
    ...(fallback.length === 0 ? [] : [`    fallback: [${fallback.map(plain).join(', ')}]`]),
  ];
}

function measuredOn({ accelerator, backend, simulated, machine, versions }: AcceleratorProfile): string {
  const names = listNames(versions.map(({ family, version }) => `${family}@${version}`));
  const where = simulated ? 'SIMULATED service times, of no device' : machine;
  return `${accelerator}: ${backend}, ${where}; ${names}`;
}

/** A name as YAML; some would be read as something else. */
function plain(name: string): string {
  return /^(true|false|null)$/i.test(name) ? JSON.stringify(name) : name;
}

function shown({ accelerator, kernel, memory }: MeasuredTarget): string {
  return `${accelerator}/${kernel}/${memory}`;
}

function milliseconds(target: MeasuredTarget, candidates: number): string {
  return `${Number(target.costMs(candidates).toPrecision(2))} ms`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

import { VERSION_NUMBER } from '../model/published-model.ts';
import type { FleetState } from './fleet-state.ts';
import type { Slot } from './slot.ts';

/** What a leaf asks for. */
export interface TargetWanted {
  accelerator: string;
  kernel: string;
  memory: string;
  /** Accelerator classes to try, in order, where the first has no live worker that can serve. */
  fallback: readonly string[];
}

export interface ModelWanted {
  family: string;
  /** Undefined: the newest of the variant in the worker's model folder. */
  version: string | undefined;
  variant: 'baseline' | 'enhanced';
  /** The request named the version: no other will do. One that a policy named is replaced where nobody has it. */
  isPinned: boolean;
}

export interface TargetChosen {
  slot: Slot;
  accelerator: string;
  kernel: string;
  memory: string;
  version: string;
  /** Why it is not what the leaf asked for first. */
  fallback: string | undefined;
  /** Why the answer can only be degraded: another kernel than the one that the leaf named computes it. */
  degradation: string | undefined;
  expectedWaitMs: number;
  /** Slots that passed the filter, for the explanation. */
  considered: number;
}

export type Choice =
  | { status: 'chosen'; target: TargetChosen }
  /** Somebody could serve it, but every such slot is out of credits. */
  | { status: 'no-credit' }
  | { status: 'no-worker'; reason: string };

/** Accelerator class → its pools. */
export type PoolsOf = (accelerator: string) => readonly string[];

/**
 * Filter, score, pick: of the accelerator classes in the leaf's order the first that has a live worker able to serve; of its
 * slots with a credit the one with the least expected wait plus service, ties at random. Load alone never moves a
 * request to another class: a class that is alive but out of credits makes the request wait.
 * Where no class has the version that the policy names, the newest of the model folders answers, which is degraded.
 */
export function chooseTarget(
  fleet: FleetState,
  poolsOf: PoolsOf,
  target: TargetWanted,
  model: ModelWanted,
  predictedMs: number,
  nowMs: number,
  random: () => number,
): Choice {
  const choice = chooseServing(fleet, poolsOf, target, model, predictedMs, nowMs, random);
  if (choice.status !== 'no-worker' || model.version === undefined || model.isPinned) return choice;
  const other = { ...model, version: undefined };
  const inPlace = chooseServing(fleet, poolsOf, target, other, predictedMs, nowMs, random);
  return inPlace.status === 'chosen'
    ? { ...inPlace, target: inPlaceOf(model.version, inPlace.target) }
    : inPlace;
}

function inPlaceOf(version: string, chosen: TargetChosen): TargetChosen {
  const why = `version ${chosen.version} computed it in place of ${version}, which no live worker has`;
  const { degradation } = chosen;
  return { ...chosen, degradation: degradation === undefined ? why : `${degradation}; ${why}` };
}

function chooseServing(
  fleet: FleetState,
  poolsOf: PoolsOf,
  target: TargetWanted,
  model: ModelWanted,
  predictedMs: number,
  nowMs: number,
  random: () => number,
): Choice {
  const serving = firstServing(fleet, poolsOf, target, model, nowMs);
  if (serving === undefined) {
    const classes = [target.accelerator, ...target.fallback].join(', ');
    const version = model.version === undefined ? '' : `@${model.version}`;
    const reason = `no live worker of ${classes} serves ${model.family}${version} (${model.variant})`;
    return { status: 'no-worker', reason };
  }
  const { accelerator, slots } = serving;
  const best = pickSlot(slots, predictedMs, fleet.foreignPenaltyMs, nowMs, random);
  if (best === undefined) return { status: 'no-credit' };
  return { status: 'chosen', target: describe(best, accelerator, target, model, slots.length, nowMs) };
}

/** Of the accelerator classes in the leaf's order the first that has live slots able to serve, with all of those. */
export function firstServing(
  fleet: FleetState,
  poolsOf: PoolsOf,
  target: TargetWanted,
  model: ModelWanted,
  nowMs: number,
): { accelerator: string; slots: readonly Slot[] } | undefined {
  for (const accelerator of [target.accelerator, ...target.fallback]) {
    const slots = filterSlots(fleet, poolsOf(accelerator), target.kernel, model, nowMs);
    if (slots.length > 0) return { accelerator, slots };
  }
  return undefined;
}

/** Slots that can serve the model: those with the wanted kernel or, where none has it, all others. */
function filterSlots(
  fleet: FleetState,
  pools: readonly string[],
  kernel: string,
  model: ModelWanted,
  nowMs: number,
): Slot[] {
  const withKernel: Slot[] = [];
  const without: Slot[] = [];
  for (const pool of pools) {
    for (const slot of fleet.slotsOf(pool)) {
      if (!fleet.isLive(slot, nowMs) || !servesModel(slot, model)) continue;
      (slot.status.kernels.includes(kernel) ? withKernel : without).push(slot);
    }
  }
  return withKernel.length > 0 ? withKernel : without;
}

export function servesModel(slot: Slot, model: ModelWanted): boolean {
  return versionServed(slot, model) !== undefined;
}

/** The version that the slot's worker would run: the named one, else the newest of the variant in its model folder. */
function versionServed({ status }: Slot, model: ModelWanted): string | undefined {
  for (const served of status.models) {
    if (served.family !== model.family) continue;
    const isIt =
      model.version === undefined
        ? served.variant === model.variant && !served.isPublished
        : served.version === model.version;
    if (isIt) return served.version;
  }
  return undefined;
}

/** Versions are numbers in the repository's layout; anything else sorts as text below them. */
export function compareVersions(a: string, b: string): number {
  const [isNumber, isOtherNumber] = [VERSION_NUMBER.test(a), VERSION_NUMBER.test(b)];
  if (isNumber !== isOtherNumber) return isNumber ? 1 : -1;
  if (isNumber) return Number(a) - Number(b);
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Expected wait plus service, ms. */
export function scoreOf(slot: Slot, predictedMs: number, nowMs: number): number {
  return slot.expectedWaitMs(nowMs) + predictedMs / slot.backlog.speed;
}

/**
 * Routers that do not see each other's dispatches would all find the same worker idle: one that another router owns is worse by a penalty, and is
 * taken nevertheless where the own ones are busy.
 */
function pickSlot(
  slots: readonly Slot[],
  predictedMs: number,
  foreignPenaltyMs: number,
  nowMs: number,
  random: () => number,
): Slot | undefined {
  let best: Slot | undefined;
  let bestMs = Number.POSITIVE_INFINITY;
  let ties = 1;
  for (const slot of slots) {
    if (!slot.credits.available(nowMs)) continue;
    const endsMs = scoreOf(slot, predictedMs, nowMs);
    const scoreMs = slot.backlog.isOwned ? endsMs : endsMs + foreignPenaltyMs;
    if (scoreMs < bestMs) {
      best = slot;
      bestMs = scoreMs;
      ties = 1;
    } else if (scoreMs === bestMs) {
      ties += 1;
      if (random() * ties < 1) best = slot;
    }
  }
  return best;
}

function describe(
  slot: Slot,
  accelerator: string,
  target: TargetWanted,
  model: ModelWanted,
  considered: number,
  nowMs: number,
): TargetChosen {
  const kernel = slot.status.kernels.includes(target.kernel)
    ? target.kernel
    : (slot.status.kernels[0] ?? target.kernel);
  const memory = slot.status.memories.includes(target.memory)
    ? target.memory
    : (slot.status.memories[0] ?? target.memory);
  const why: string[] = [];
  if (accelerator !== target.accelerator) {
    const serving = model.version === undefined ? '' : ` serves ${model.family}@${model.version}`;
    why.push(`no live worker of ${target.accelerator}${serving}`);
  }
  if (kernel !== target.kernel) why.push(`no live worker of ${accelerator} has kernel ${target.kernel}`);
  if (memory !== target.memory) why.push(`the worker has no memory domain ${target.memory}`);
  return {
    slot,
    accelerator,
    kernel,
    memory,
    version: versionServed(slot, model) ?? '',
    fallback: why.length === 0 ? undefined : why.join('; '),
    degradation:
      kernel === target.kernel ? undefined : `kernel ${kernel} computed it in place of ${target.kernel}`,
    expectedWaitMs: slot.expectedWaitMs(nowMs),
    considered,
  };
}

import { own } from '../own.ts';
import { NO_WORKER_UTILISATION } from './projection.ts';
import { percent, seconds } from './reason-text.ts';
import type { HoldReason } from './rollout-event.ts';
import type { RolloutState } from './rollout-state.ts';

/** Why the shadow must pause, each reason for itself. */
export function shadowReasons(rollout: RolloutState): HoldReason[] {
  return [
    ...silenceReasons(rollout),
    ...latencyReasons(rollout),
    ...exceptionReasons(rollout),
    ...costReasons(rollout),
    ...utilisationReasons(rollout),
    ...leafReasons(rollout),
    ...diffReasons(rollout),
  ];
}

/** Whether the shadow has lasted, and has seen, as much as it must. */
export function hasShadowRun({ observedMs, shadow, terms }: RolloutState): boolean {
  return observedMs >= (terms.stages[0]?.dwellMs ?? 0) && shadow.requests >= terms.limits.shadowRequestsMin;
}

/** The comparison of the arms has its own rule for the stages after. */
function silenceReasons({ silentMs, terms }: RolloutState): HoldReason[] {
  if (silentMs < terms.limits.silenceMsMax) return [];
  const text = `no request was decided in shadow for ${seconds(silentMs)} s`;
  return [{ code: 'no-data', text }];
}

function latencyReasons({ shadow, terms }: RolloutState): HoldReason[] {
  const { latencyApartMin, latencyApartShareMax, shareRequestsMin } = terms.limits;
  if (shadow.requests < shareRequestsMin) return [];
  const share = shadow.latencyApart / shadow.requests;
  if (!(share > latencyApartShareMax)) return [];
  const text = `predicted latency is apart by more than ${percent(latencyApartMin)} for ${percent(share)} of the requests outside the declared diff; at most ${percent(latencyApartShareMax)} may be`;
  return [{ code: 'latency-apart', text }];
}

function exceptionReasons({ shadow }: RolloutState): HoldReason[] {
  if (shadow.exceptions === 0) return [];
  const text = `deciding by the candidate threw ${shadow.exceptions} times; the count stands until the stage restarts`;
  return [{ code: 'exceptions', text }];
}

function costReasons({ lastLook, terms }: RolloutState): HoldReason[] {
  const costUsP99 = lastLook?.shadow?.costUsP99 ?? 0;
  const { costUsP99Max } = terms.limits;
  if (!(costUsP99 > costUsP99Max)) return [];
  const text = `a decision of the candidate costs ${Math.round(costUsP99)} µs (p99); at most ${costUsP99Max} µs may be`;
  return [{ code: 'routing-cost', text }];
}

function utilisationReasons({ lastLook, terms }: RolloutState): HoldReason[] {
  const { projectedUtilisationMax } = terms.limits;
  const full = Object.entries(lastLook?.shadow?.projectedUtilisation ?? {})
    .filter(([, utilisation]) => utilisation > projectedUtilisationMax)
    .map(([pool, utilisation]) =>
      utilisation >= NO_WORKER_UTILISATION
        ? `${pool} has no live worker for its requests`
        : `${pool} ${percent(utilisation)}`,
    );
  if (full.length === 0) return [];
  const text = `with all traffic on the candidate, pools would be used more than ${percent(projectedUtilisationMax)}: ${full.join(', ')}`;
  return [{ code: 'projected-utilisation', text }];
}

/** Only at the end: every leaf begins without a hit. */
function leafReasons(rollout: RolloutState): HoldReason[] {
  if (!hasShadowRun(rollout)) return [];
  const { leaves, waivedLeaves, limits } = rollout.terms;
  const rare = leaves
    .filter((leaf) => !waivedLeaves.includes(leaf))
    .map((leaf) => ({ leaf, hits: own(rollout.shadow.leaves, leaf) ?? 0 }))
    .filter(({ hits }) => hits < limits.leafHitsMin);
  if (rare.length === 0) return [];
  const named = rare.map(({ leaf, hits }) => `${leaf} (${hits})`).join(', ');
  const text = `leaves were hit fewer than ${limits.leafHitsMin} times: ${named}; START again with {"waive": {"leaves": […]}} to go on without`;
  return [{ code: 'leaf-not-hit', text }];
}

function diffReasons({ shadow, terms }: RolloutState): HoldReason[] {
  const { expect, limits } = terms;
  if (expect === undefined) return [];
  const against: string[] = [];
  if (expect.leaves !== undefined && shadow.changedOutsideDeclared > 0)
    against.push(
      `${shadow.changedOutsideDeclared} changed requests end in other leaves than ${expect.leaves.join(', ')}`,
    );
  const share = shadow.changed / shadow.requests;
  if (expect.changedShare !== undefined && shadow.requests >= limits.shareRequestsMin) {
    const [low, high] = expect.changedShare;
    if (share < low || share > high)
      against.push(
        `${percent(share)} of the requests change, declared are ${percent(low)} to ${percent(high)}`,
      );
  }
  if (against.length === 0) return [];
  return [
    { code: 'diff-contradicted', text: `the policy's \`expect\` is contradicted: ${against.join('; ')}` },
  ];
}

import type { LoggedEvent } from '../client/control-events.ts';

/** A control event as plain JSON: its evidence parsed, its time in words. */
export interface ShownEvent extends Omit<LoggedEvent, 'evidence' | 'occurredAt' | 'isVoid'> {
  at: string;
  void: boolean;
  evidence: unknown;
}

export function shownEvent(event: LoggedEvent): ShownEvent {
  const { evidence, occurredAt, isVoid, ...rest } = event;
  return { at: new Date(occurredAt).toISOString(), ...rest, void: isVoid, evidence: parseEvidence(evidence) };
}

export const EVENT_HEADERS: readonly string[] = ['at', 'event', 'scope', 'epoch', 'term', 'by', 'what'];

/** Cells for EVENT_HEADERS. */
export function eventCells(event: LoggedEvent): string[] {
  const { scope, epoch, term, actor } = event;
  const at = new Date(event.occurredAt).toISOString();
  return [at, eventType(event), scope, String(epoch), String(term), actor, eventDetail(event)];
}

/** As people read it. What counts for nothing says so: else it reads like a decision. */
export function eventType({ type, isVoid }: Pick<LoggedEvent, 'type' | 'isVoid'>): string {
  return isVoid ? `${type} (void)` : type;
}

/** What is particular about an event, in one line: the policy, the step, what was seen, why. */
export function eventDetail({ reason, evidence }: Pick<LoggedEvent, 'reason' | 'evidence'>): string {
  if (reason !== null) return reason;
  const fields = fieldsOf(parseEvidence(evidence));
  if (fields['type'] === 'tuning-stepped')
    return `${textOf(fields['name'])} ${numberText(fields['from'])} → ${numberText(fields['to'])}; ${textOf(fields['reason'])}`;
  const parts = [
    policyText(fields['policy']),
    modelText(fields['model']),
    policyText(fields['candidate']),
    fields['from'] === undefined ? '' : `in place of ${policyText(fields['from'])}`,
    stepText(fields['to']),
    listText('passed over', fields['overridden']),
    reasonsText(fields['reasons']),
    textOf(fields['reason']),
    textOf(fields['keyId']),
    observationText(fields['observation']),
  ];
  return parts.filter((part) => part !== '').join('; ');
}

/** The codes of a hold's reasons; empty for any other event. */
export function eventReasonCodes({ evidence }: Pick<LoggedEvent, 'evidence'>): string {
  const reasons = fieldsOf(parseEvidence(evidence))['reasons'];
  return Array.isArray(reasons) ? reasons.map((each) => textOf(fieldsOf(each)['code'])).join() : '';
}

/** `starter@2 sha256:0123abcd…` */
function policyText(value: unknown): string {
  const { name, version, digest } = fieldsOf(value);
  if (typeof name !== 'string' || typeof version !== 'number') return '';
  return `${name}@${version}${typeof digest === 'string' ? ` ${digest.slice(0, DIGEST_SHOWN)}…` : ''}`;
}

/** `ranker@3 sha256:0123abcd… from https://models.example/ranker/3/` */
function modelText(value: unknown): string {
  const { family, version, digest, source } = fieldsOf(value);
  if (typeof family !== 'string' || typeof version !== 'string') return '';
  return `${family}@${version} ${textOf(digest).slice(0, DIGEST_SHOWN)}… from ${textOf(source)}`;
}

const DIGEST_SHOWN = 'sha256:'.length + 8;

/** Stages are told by their place; the shadow is the first. */
function stepText(to: unknown): string {
  if (to === 'live') return 'to live';
  return typeof to === 'number' ? `to stage ${to + 1}` : '';
}

function reasonsText(reasons: unknown): string {
  if (!Array.isArray(reasons)) return '';
  return reasons.map((each) => textOf(fieldsOf(each)['text'])).join('; ');
}

function listText(before: string, list: unknown): string {
  return Array.isArray(list) && list.length > 0 ? `${before}: ${list.map(String).join('; ')}` : '';
}

/** `312 stable, 17 canary requests in 10 s`; a window lasts what it lasted, to parts of a millisecond. */
function observationText(value: unknown): string {
  const { stable, canary, shadow, windowMs } = fieldsOf(value);
  if (typeof windowMs !== 'number') return '';
  const requests = (arm: unknown): string => String(fieldsOf(arm)['requests'] ?? 0);
  const second = shadow === undefined ? `${requests(canary)} canary` : `${requests(shadow)} shadow`;
  return `${requests(stable)} stable, ${second} requests in ${secondsText(windowMs)}`;
}

function secondsText(ms: number): string {
  const seconds = ms / 1_000;
  return `${seconds < 9.95 ? seconds.toFixed(1) : seconds.toFixed(0)} s`;
}

/** Without what steps of a fraction leave behind (0.6000000000000001). */
function numberText(value: unknown): string {
  return typeof value === 'number' ? String(Number(value.toPrecision(12))) : String(value);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function parseEvidence(evidence: string): unknown {
  try {
    return JSON.parse(evidence);
  } catch {
    return evidence;
  }
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

import { MillraceError } from '../errors.ts';
import {
  count,
  flag,
  list,
  MISFIT,
  number,
  oneOf,
  onlyFields,
  optional,
  parseJson,
  type Shape,
  text,
} from './json-shape.ts';

/** Body of START. `waive.leaves` may stay rarely hit in shadow; the automatic steps default to the controller's settings. */
export interface StartBody {
  readonly version: number;
  readonly waivedLeaves: readonly string[];
  readonly autoPromote: boolean | undefined;
  readonly autoRollback: boolean | undefined;
}

export interface PromoteBody {
  readonly to: 'live' | 'next';
  readonly overHold: boolean;
}

const REASON_LENGTH_MAX = 1_000;

/** @throws MillraceError INVALID_COMMAND, as all readers here do for a body that is not what the command takes */
export function readStart(body: string): StartBody {
  const read = readBody(
    'START',
    body,
    onlyFields({
      version: count,
      waive: optional(onlyFields({ leaves: optional(list(text), []) }), { leaves: [] }),
      autoPromote: optional(flag, undefined),
      autoRollback: optional(flag, undefined),
    }),
    '{"version": 7}, with "waive": {"leaves": ["…"]}, "autoPromote" or "autoRollback": true or false where wanted',
  );
  const { version, waive, autoPromote, autoRollback } = read;
  return { version, waivedLeaves: [...new Set(waive.leaves)], autoPromote, autoRollback };
}

export function readPromote(body: string): PromoteBody {
  const { to, overHold } = readBody(
    'PROMOTE',
    body,
    onlyFields({ to: optional(oneOf(['live']), 'next' as const), overHold: optional(flag, false) }),
    'nothing, {}, {"to": "live"}, {"overHold": true}',
  );
  return { to, overHold };
}

/** Body of HOLD and ABORT; an emergency may come without a reason. */
export function readReason(type: 'HOLD' | 'ABORT', body: string): string {
  const { reason } = readBody(
    type,
    body,
    onlyFields({ reason: optional(text, '') }),
    'nothing, or {"reason": "…"}',
  );
  return reason === '' ? 'no reason was given' : reason.slice(0, REASON_LENGTH_MAX);
}

/** A bare number is what earlier versions sent. */
export function readRollBack(body: string): number | undefined {
  const trimmed = body.trim();
  if (/^\d{1,10}$/.test(trimmed)) return Number(trimmed);
  const { version } = readBody(
    'ROLL_BACK',
    trimmed,
    onlyFields({ version: optional(count, undefined) }),
    'version number, {"version": 7}, or empty',
  );
  return version;
}

export function readRevokeKey(body: string): string {
  return readBody('REVOKE_KEY', body, onlyFields({ keyId: text }), '{"keyId": "…"}').keyId;
}

export function readTune(body: string): { name: string; value: number } {
  return readBody(
    'TUNE',
    body,
    onlyFields({ name: text, value: number(-Number.MAX_VALUE) }),
    '{"name": "hbm-floor", "value": 72000}',
  );
}

function readBody<T>(type: string, body: string, shape: Shape<T>, allowed: string): T {
  const read = parseJson(body.trim() === '' ? '{}' : body, shape);
  if (read !== MISFIT) return read;
  throw new MillraceError('INVALID_COMMAND', `${type} does not take this body`, {
    value: body.slice(0, 40),
    allowed,
  });
}

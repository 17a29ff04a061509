/** People sign everything in their scopes; a controller's own key signs rollout steps and tuning only. */
export const KEY_ROLES = ['person', 'controller'] as const;
export type KeyRole = (typeof KEY_ROLES)[number];

/** A public key that may sign commands. */
export interface ControlKey {
  readonly keyId: string;
  readonly role: KeyRole;
  /** Whose it is: keys of one person count as one person's, however many there are. Undefined: of somebody who has no other key. */
  readonly person: string | undefined;
  /** The 32 bytes of the ed25519 public key. */
  readonly publicKey: Uint8Array;
  /** `policy/feed`, `policy/*` (everything that begins with `policy/`) or `*`. */
  readonly scopes: readonly string[];
  /** What a signature of the key has to be made for, so that it counts in no other installation that knows the key; undefined: it names none. */
  readonly installation: string | undefined;
  /** The key signs from then on, ms since the epoch; undefined: always did. */
  readonly notBefore: number | undefined;
  /** The key signs no longer from then on, ms since the epoch; undefined: until it is revoked. */
  readonly notAfter: number | undefined;
}

/** Keys by their id. Several of one person overlap while one takes over from another. */
export type KeyRing = ReadonlyMap<string, ControlKey>;

/** What a controller's key may sign: steps of a rollout, and tuning (whose bounds the policy declares). Starting a rollout is a person's. */
const CONTROLLER_TYPES: readonly string[] = ['PROMOTE', 'HOLD', 'ABORT', 'ROLL_BACK', 'TUNE'];

/** Scopes of commands: a policy, a model family, the keys. */
const COMMAND_SCOPE = /^(?:keys|(?:policy|model)\/[A-Za-z0-9._-]+)$/;
const COMMAND_SCOPE_STARTS: readonly string[] = ['policy/', 'model/', 'keys'];

/** Whether any command can have a scope that the pattern covers. */
export function coversAnyCommand(pattern: string): boolean {
  if (!pattern.endsWith('*')) return COMMAND_SCOPE.test(pattern);
  const start = pattern.slice(0, -1);
  return COMMAND_SCOPE_STARTS.some((each) => each.startsWith(start)) || COMMAND_SCOPE.test(start);
}

export function coversScope(patterns: readonly string[], scope: string): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? scope.startsWith(pattern.slice(0, -1)) : pattern === scope,
  );
}

/** Why this key may not sign this command at this time; undefined where it may. */
export function keyRefusal(
  key: ControlKey,
  command: { readonly scope: string; readonly type: string },
  atMs: number,
): string | undefined {
  const { keyId, role, scopes, notBefore, notAfter } = key;
  if (notBefore !== undefined && atMs < notBefore)
    return `the key ${keyId} is valid from ${isoTime(notBefore)} on`;
  if (notAfter !== undefined && atMs >= notAfter)
    return `the key ${keyId} was valid until ${isoTime(notAfter)}; sign with the key that took over`;
  if (!coversScope(scopes, command.scope))
    return `the key ${keyId} may not sign for ${command.scope}; its scopes: ${scopes.join(', ')}`;
  if (role === 'controller' && !CONTROLLER_TYPES.includes(command.type))
    return `the key ${keyId} is a controller's, and may not sign ${command.type}; allowed: ${CONTROLLER_TYPES.join(', ')}`;
  return undefined;
}

/** Whether the key is a person's who may take keys out at this time. */
export function mayRevoke(key: ControlKey, atMs: number): boolean {
  return key.role === 'person' && keyRefusal(key, { scope: 'keys', type: 'REVOKE_KEY' }, atMs) === undefined;
}

/** A time as messages show it; a number that is no time as itself. */
export function isoTime(ms: number): string {
  return Math.abs(ms) <= LATEST_MS ? new Date(ms).toISOString() : `${ms} ms`;
}

/** What a Date can hold. */
const LATEST_MS = 8.64e15;

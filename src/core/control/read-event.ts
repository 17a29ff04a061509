import type { ControllerEvent, PublishedPolicy } from './controller-state.ts';

/**
 * An event as the log of control events keeps it, in the JSON of its evidence. Undefined for what is none that this version knows: such a
 * command is then decided anew.
 */
export function readControllerEvent(evidence: string): ControllerEvent | undefined {
  const fields = parseObject(evidence);
  if (fields === undefined) return undefined;
  const { type, commandId, scope, actor } = fields;
  if (type === 'leadership-taken') {
    return isCount(fields['term']) ? { type, term: fields['term'] } : undefined;
  }
  if (typeof commandId !== 'string' || typeof scope !== 'string' || typeof actor !== 'string')
    return undefined;
  if (type === 'command-refused') {
    const { reason } = fields;
    return typeof reason === 'string' ? { type, commandId, scope, actor, reason } : undefined;
  }
  const { epoch } = fields;
  if (!isCount(epoch)) return undefined;
  if (type === 'store-reseeded') return { type, commandId, scope, actor, epoch };
  const policy = readPolicy(fields['policy']);
  if (policy === undefined) return undefined;
  if (type === 'policy-published') return { type, commandId, scope, actor, policy, epoch };
  const from = readPolicy(fields['from']);
  if (type !== 'policy-rolled-back' || from === undefined) return undefined;
  return { type, commandId, scope, actor, from, policy, epoch };
}

function parseObject(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function readPolicy(value: unknown): PublishedPolicy | undefined {
  if (!isObject(value)) return undefined;
  const { digest, name, version } = value;
  if (typeof digest !== 'string' || typeof name !== 'string' || !isCount(version)) return undefined;
  return { digest, name, version };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

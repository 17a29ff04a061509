import type { ConfluentSchemaRegistryOptions } from './confluent.ts';

/** What a registry says of a subject for which nobody chose a compatibility; Apicurio gives it where Confluent answers 404. */
const NOBODY_CHOSE = 'NONE';

/**
 * Chooses the compatibility of a subject for which nobody did, before anything is registered under it: the client sets it after the first
 * registration, and whoever else registers in between, or after a time-out there, finds a subject that does not match.
 */
export async function chooseCompatibility(
  options: ConfluentSchemaRegistryOptions,
  subject: string,
  compatibility: string,
  timeoutMs: number,
): Promise<void> {
  const url = `${options.url.replace(/\/+$/, '')}/config/${encodeURIComponent(subject)}`;
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (options.auth !== undefined) {
    const { username, password } = options.auth;
    headers['authorization'] = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  }
  const current = await fetch(url, { headers, signal: AbortSignal.timeout(timeoutMs) });
  if (current.ok) {
    const answer: unknown = await current.json();
    const level =
      typeof answer === 'object' && answer !== null && 'compatibilityLevel' in answer
        ? answer.compatibilityLevel
        : undefined;
    if (level !== NOBODY_CHOSE) return;
  } else if (current.status !== 404) return;
  // Whatever it answers, the registration that follows is refused with the reason if this did not hold.
  const chosen = await fetch(url, {
    method: 'PUT',
    headers,
    body: JSON.stringify({ compatibility }),
    signal: AbortSignal.timeout(timeoutMs),
  });
  await chosen.arrayBuffer();
}

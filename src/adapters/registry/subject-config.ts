import http from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import type { ConfluentSchemaRegistryOptions } from './confluent.ts';
import type { Patience } from './patience.ts';

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
  patience: Patience,
): Promise<void> {
  const url = `${options.url.replace(/\/+$/, '')}/config/${encodeURIComponent(subject)}`;
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (options.auth !== undefined) {
    const { username, password } = options.auth;
    headers['authorization'] = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  }
  const current = await send(url, { headers, patience });
  if (current.status >= 200 && current.status < 300) {
    const answer: unknown = JSON.parse(current.body);
    const level =
      typeof answer === 'object' && answer !== null && 'compatibilityLevel' in answer
        ? answer.compatibilityLevel
        : undefined;
    if (level !== NOBODY_CHOSE) return;
  } else if (current.status !== 404) return;
  // Whatever it answers, the registration that follows is refused with the reason if this did not hold.
  await send(url, { method: 'PUT', headers, body: JSON.stringify({ compatibility }), patience });
}

interface Sent {
  method?: 'PUT';
  headers: Record<string, string>;
  body?: string;
  patience: Patience;
}

/** By `node:http`, which the client uses too: the first `fetch` of a process costs it 18 MB, more than all else here. */
function send(
  url: string,
  { method, headers, body, patience }: Sent,
): Promise<{ status: number; body: string }> {
  const { request } = url.startsWith('https:') ? https : http;
  patience.begin();
  return new Promise((resolve, reject) => {
    const sending = request(
      url,
      { method: method ?? 'GET', headers, signal: patience.signal },
      (response) => {
        text(response).then((answer) => resolve({ status: response.statusCode ?? 0, body: answer }), reject);
      },
    );
    sending.on('error', reject);
    sending.end(body);
  });
}

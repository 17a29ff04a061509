import { confluentSchemaRegistry } from '../adapters/registry/confluent.ts';
import { MillraceError } from '../core/errors.ts';

const SUBJECT = 'millrace-warm-up-value';
const ID = { name: 'id', type: 'string' };
const COUNT = { name: 'count', type: 'int', default: 0 };
/** A busy machine takes its time; whoever starts a registry waits for it. */
const REQUEST_TIMEOUT_MS = 60_000;

/**
 * Makes a registry do once what clients do first, and leaves no subject behind: registers a schema and a second version of it, and looks both
 * up, by id and by text. A registry that has just started answers `GET /subjects` while most classes that a registration needs are not loaded
 * yet: on a busy machine its first clients would wait for that for longer than their time-outs.
 */
export async function warmRegistry(url: string): Promise<void> {
  const registry = confluentSchemaRegistry({ url, timeoutMs: REQUEST_TIMEOUT_MS });
  for (const schema of [recordOf([ID]), recordOf([ID, COUNT])]) {
    await registry.schemaById(await registry.register(SUBJECT, schema, 'FULL_TRANSITIVE'));
    await send('POST', `${url}/subjects/${SUBJECT}`, { schema });
  }
  await send('DELETE', `${url}/subjects/${SUBJECT}`);
  await send('DELETE', `${url}/subjects/${SUBJECT}?permanent=true`);
}

function recordOf(fields: readonly object[]): string {
  return JSON.stringify({ type: 'record', name: 'WarmUp', namespace: 'millrace', fields });
}

async function send(method: 'POST' | 'DELETE', url: string, body?: object): Promise<void> {
  const response = await fetch(url, {
    method,
    signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    ...(body === undefined
      ? {}
      : {
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
        }),
  });
  const answer = await response.text();
  if (response.ok) return;
  throw new MillraceError('STACK_UNAVAILABLE', `the registry does not take ${method} ${url}: ${answer}`, {
    value: response.status,
    allowed: '2xx',
  });
}

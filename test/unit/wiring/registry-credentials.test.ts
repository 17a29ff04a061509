import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { systemClock } from '../../../src/adapters/system/clock.ts';
import { loadSettings, settingVariables, shownValue } from '../../../src/config/load-settings.ts';
import { registerSchemas } from '../../../src/wiring/runtime.ts';

let server: Server | undefined;
/** The Authorization header of each request. */
let seen: Set<string | undefined>;

/** As much of a registry as registering takes; it serves whoever shows `expected`, after it was away for the first `away` requests. */
async function serve(expected: string | undefined, away = 0): Promise<string> {
  const levels = new Map<string, string>();
  let ids = 0;
  const listening = createServer(async (request, response) => {
    seen.add(request.headers.authorization);
    if (away > 0) {
      away -= 1;
      response.writeHead(503).end('away');
      return;
    }
    const path = request.url ?? '';
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const body = request.method === 'GET' ? {} : ((await json(request)) as { compatibility?: string });
    if (request.headers.authorization !== expected)
      answer(401, { error_code: 401, message: 'who is there?' });
    else if (request.method === 'POST') answer(200, { id: ++ids });
    else if (request.method === 'PUT') {
      levels.set(path, body.compatibility ?? '');
      answer(200, body);
    } else if (levels.has(path)) answer(200, { compatibilityLevel: levels.get(path) });
    else answer(404, { error_code: 40408, message: 'nobody chose' });
  });
  server = listening;
  listening.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  return `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
}

beforeEach(() => {
  seen = new Set();
});
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

const register = (environment: Record<string, string>) =>
  registerSchemas(loadSettings(environment).settings, silentTelemetry(), systemClock());
const CREDENTIALS = { MILLRACE_REGISTRY_USERNAME: 'key', MILLRACE_REGISTRY_PASSWORD: 'se:cret' };
const BASIC = `Basic ${Buffer.from('key:se:cret').toString('base64')}`;

describe('the schema registry', () => {
  it('is shown user and password with every request', async () => {
    const url = await serve(BASIC);
    await register({ MILLRACE_REGISTRY_URL: url, ...CREDENTIALS });
    expect([...seen]).toEqual([BASIC]);
  });

  it('is shown nothing where no user is set', async () => {
    const url = await serve(undefined);
    await register({ MILLRACE_REGISTRY_URL: url });
    expect([...seen]).toEqual([undefined]);
  });

  it('that does not take them ends the start, and the error does not tell them', async () => {
    const url = await serve('Basic of somebody else');
    const refused = await register({ MILLRACE_REGISTRY_URL: url, ...CREDENTIALS }).catch((error) => error);
    expect(refused).toMatchObject({ code: 'INVALID_CONFIG' });
    expect(String(refused)).toMatch(/credentials of the schema registry/);
    expect(String(refused)).not.toContain('cret');
  });

  it('that is away is told to whoever listens, and not logged', async () => {
    const url = await serve(undefined, 3);
    const telemetry = silentTelemetry();
    const heard: string[] = [];
    const { settings } = loadSettings({ MILLRACE_REGISTRY_URL: url });
    await registerSchemas(settings, telemetry, systemClock(), {
      waitsFor: (what) => void heard.push(what),
    });
    expect(new Set(heard).size).toBe(1);
    expect(heard[0]).toContain(`the schema registry at ${url} did not answer`);
    expect(telemetry.logs).toEqual([]);
  });

  it('that is away for long is logged less and less often where nobody listens', async () => {
    const url = await serve(undefined, 3_000);
    const telemetry = silentTelemetry();
    const clock = { ...systemClock() };
    const { settings } = loadSettings({ MILLRACE_REGISTRY_URL: url });
    let waits = 0;
    const registering = registerSchemas(settings, telemetry, {
      ...clock,
      // The ninth wait never ends.
      after: (_, callback) => {
        waits += 1;
        return waits < 9 ? clock.after(0, callback) : () => undefined;
      },
    });
    await Promise.race([registering, expect.poll(() => waits, { timeout: 20_000 }).toBe(9)]);
    expect(telemetry.logs.map(({ fields }) => fields['failures'])).toEqual([1, 2, 4, 8]);
  });

  it('has a password that is shown masked', () => {
    const variable = settingVariables().find(({ path }) => path.join('.') === 'registry.password');
    expect(variable && shownValue(variable, loadSettings(CREDENTIALS).settings)).toBe('***');
  });
});

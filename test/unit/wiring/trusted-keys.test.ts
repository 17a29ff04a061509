import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { generateEd25519 } from '../../../src/adapters/system/ed25519.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { controllerSigner, storeTrust } from '../../../src/wiring/trusted-keys.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-keys-'));
  const { privateKeyPem, publicKey } = generateEd25519();
  writeFileSync(join(folder, 'own.pem'), privateKeyPem);
  const entry = (keyId: string, role: string): string =>
    `{keyId: ${keyId}, role: ${role}, publicKey: ${Buffer.from(publicKey).toString('base64')}, scopes: ["policy/*"]}`;
  writeFileSync(
    join(folder, 'keys.yaml'),
    `keys: [${entry('ana', 'person')}, ${entry('controller', 'controller')}]`,
  );
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Settings of `controller`; files are named without their folder. */
function given(controller: Readonly<Record<string, string | boolean>>) {
  const files = new Set(['keys', 'signingKey']);
  const overrides = Object.entries(controller).map(([name, value]) => [
    `controller.${name}`,
    files.has(name) ? join(folder, String(value)) : value,
  ]);
  const { logger, logs } = silentTelemetry();
  return { settings: loadSettings({}, Object.fromEntries(overrides)).settings, logger, logs };
}

describe("the controller's own key", () => {
  it('signs by the name that the settings give it', () => {
    const { settings, logger } = given({ keys: 'keys.yaml', signingKey: 'own.pem' });
    expect(controllerSigner(settings, logger)).toMatchObject({ keyId: 'controller' });
  });

  it('is refused where its name is a person’s, or nobody’s', () => {
    for (const signingKeyId of ['ana', 'eve']) {
      const { settings, logger } = given({ keys: 'keys.yaml', signingKey: 'own.pem', signingKeyId });
      expect(() => controllerSigner(settings, logger)).toThrow(/no key of a controller.*allowed: controller/);
    }
  });

  it('is missed where it is needed', () => {
    const { settings, logger, logs } = given({ keys: 'keys.yaml', tuning: true });
    expect(controllerSigner(settings, logger)).toBeUndefined();
    expect(JSON.stringify(logs)).toContain('nothing will be tuned');
  });
});

describe('what routers take policies by, and workers model versions', () => {
  it.each([
    [
      'nothing, where there is nothing to check with and leave to do without',
      { acceptUnsigned: true },
      undefined,
      '',
    ],
    ['the keys, where unsigned ones pass as well', { acceptUnsigned: true, keys: 'keys.yaml' }, 2, ''],
    ['the keys', { keys: 'keys.yaml' }, 2, 'policies of the store must be signed'],
    ['no key, and so no policy', {}, 0, 'all policies of the store will be refused'],
  ])('is %s', (_name, controller, keys, said) => {
    const { settings, logger, logs } = given(controller);
    expect(storeTrust(settings, 'policies', logger)?.keys.size).toBe(keys);
    expect(JSON.stringify(logs)).toContain(said);
    expect(storeTrust(settings, 'model versions', logger)?.keys.size).toBe(keys);
    expect(JSON.stringify(logs)).toContain(said.replace('policies', 'model versions'));
  });
});

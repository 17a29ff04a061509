import { chmodSync, statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ed25519Verifier } from '../../../src/adapters/system/ed25519.ts';
import { readCommandText } from '../../../src/cli/command-file.ts';
import { parseKeyFile } from '../../../src/config/key-file.ts';
import { INITIAL_SIGNATURE_STATE } from '../../../src/core/control/signature-state.ts';
import { verifyCommand } from '../../../src/core/control/verify-command.ts';
import { millrace } from './cli.fixture.ts';
import { temporaryFolder } from './temporary-folder.ts';

const STARTER = 'examples/policies/starter.yaml';
const { verify } = ed25519Verifier();

/** Makes keys; answers their key file. */
async function keygen(folder: ReturnType<typeof temporaryFolder>, ...ids: string[]): Promise<string> {
  const entries: string[] = [];
  for (const id of ids) {
    const { out, exitCode } = await millrace(['policy', 'keygen', id, '--out', folder.path(`${id}.pem`)]);
    expect(exitCode).toBe(0);
    entries.push(out.replace(/^#.*\nkeys:\n/, ''));
  }
  return `keys:\n${entries.join('')}`;
}

describe('millrace policy keygen', () => {
  it('writes a private key that only its owner reads, and prints the entry of the key file', async () => {
    const folder = temporaryFolder();
    const args = ['policy', 'keygen', 'ana', '--scope', 'policy/*', 'keys', '--out', folder.path('ana.pem')];
    const { out, exitCode } = await millrace(args);
    expect(exitCode).toBe(0);
    expect(statSync(folder.path('ana.pem')).mode & 0o777).toBe(0o600);
    expect(folder.read('ana.pem')).toMatch(/^# key-id: ana\n-----BEGIN PRIVATE KEY-----/);
    expect(out).not.toContain('PRIVATE KEY');
    expect(parseKeyFile(out, 'out').get('ana')).toMatchObject({
      role: 'person',
      scopes: ['policy/*', 'keys'],
    });
  });

  it('prints JSON, for a controller as well', async () => {
    const file = temporaryFolder().path('tuner.pem');
    const { out } = await millrace([
      'policy',
      'keygen',
      'tuner',
      '--role',
      'controller',
      '--out',
      file,
      '--json',
    ]);
    const { privateKey, entry } = JSON.parse(out);
    expect(privateKey).toBe(file);
    expect(parseKeyFile(JSON.stringify({ keys: [entry] }), 'out').get('tuner')).toMatchObject({
      role: 'controller',
      scopes: ['policy/*'],
    });
  });

  it('never overwrites a key', async () => {
    const folder = temporaryFolder();
    await keygen(folder, 'ana');
    const before = folder.read('ana.pem');
    const { err, exitCode } = await millrace(['policy', 'keygen', 'ana', '--out', folder.path('ana.pem')]);
    expect(exitCode).toBe(2);
    expect(err).toMatch(/there already, and a key is never overwritten.*another id, or another --out/);
    expect(folder.read('ana.pem')).toBe(before);
  });

  it('says why the key cannot be written', async () => {
    const { err, exitCode } = await millrace(['policy', 'keygen', 'ana', '--out', '/no/such/ana.pem']);
    expect(exitCode).toBe(2);
    expect(err).toMatch(/cannot be written: its folder does not exist \(got "\/no\/such\/ana\.pem"\)/);
  });

  it.each([
    [['a b'], /not an id of a key \(got "a b"; allowed: letters, digits/],
    [['ana', '--scope', 'a**'], /not a scope of commands \(got "a\*\*"/],
    [
      ['ana', '--scope', 'policy/*', 'foo'],
      /not a scope .*got "foo"; allowed: .*policy\/<name>, model\/<family>, keys/,
    ],
    [['ana', '--role', 'admin'], /Allowed choices are person, controller/],
  ])('%j is refused with what is allowed', async (args, message) => {
    const file = temporaryFolder().path('k.pem');
    const { err, exitCode } = await millrace(['policy', 'keygen', ...args, '--out', file]);
    expect(exitCode).toBe(2);
    expect(err).toMatch(message);
  });
});

describe('millrace policy sign', () => {
  it('makes the command that publishes a policy, which a second person co-signs', async () => {
    const folder = temporaryFolder();
    const keys = parseKeyFile(await keygen(folder, 'ana', 'ben'), 'keys');
    const file = folder.path('publish.json');
    const first = await millrace(['policy', 'sign', STARTER, '--key', folder.path('ana.pem'), '--out', file]);
    expect(first).toMatchObject({
      exitCode: 0,
      out: expect.stringMatching(/signed by ana; not sent.*control send/),
    });
    expect(first.err).toMatch(/signing PUBLISH_POLICY of policy\/starter, body \d+ characters, see the file/);
    const second = await millrace(['policy', 'sign', file, '--key', folder.path('ben.pem'), '--out', file]);
    expect(second).toMatchObject({ exitCode: 0, out: expect.stringContaining('signed by ana and ben') });
    expect(second.err).toContain('co-signing PUBLISH_POLICY of policy/starter');
    const command = readCommandText(folder.read('publish.json'), file);
    expect(verifyCommand(keys, INITIAL_SIGNATURE_STATE, command, Date.now(), verify)).toEqual({
      status: 'ok',
      signedBy: 'ana',
      coSignedBy: 'ben',
    });
  });

  it('prints the command where no file is given', async () => {
    const folder = temporaryFolder();
    await keygen(folder, 'ana');
    const args = [
      'policy',
      'sign',
      STARTER,
      '--key',
      folder.path('ana.pem'),
      '--key-id',
      'other',
      '--valid-for',
      '5m',
    ];
    const beforeMs = Date.now();
    const { out } = await millrace(args);
    const afterMs = Date.now();
    const command = JSON.parse(out);
    expect(command).toMatchObject({
      type: 'PUBLISH_POLICY',
      signature: { keyId: 'other', version: 1 },
      coSignature: null,
    });
    // Date.now() is cut to whole milliseconds, the command's time is rounded
    const signedMs = Date.parse(command.signature.notAfter) - 300_000;
    expect(signedMs).toBeGreaterThanOrEqual(beforeMs);
    expect(signedMs).toBeLessThanOrEqual(afterMs + 1);
  });

  it("knows the key's id whatever its file is called; a key of other tools goes by its file", async () => {
    const folder = temporaryFolder();
    await keygen(folder, 'ana');
    const signedBy = async (...args: string[]): Promise<unknown> => {
      const { out } = await millrace(['policy', 'sign', STARTER, ...args]);
      return JSON.parse(out).signature.keyId;
    };
    const renamed = folder.write('my-key.pem', folder.read('ana.pem'));
    const plain = folder.write('ci.pem', folder.read('ana.pem').replace(/^#.*\n/, ''));
    expect(await signedBy('--key', renamed)).toBe('ana');
    expect(await signedBy('--key', renamed, '--key-id', 'other')).toBe('other');
    expect(await signedBy('--key', plain)).toBe('ci');
  });

  it('writes no signature that the key file of the installation does not know', async () => {
    const folder = temporaryFolder();
    const keys = folder.write('keys.yaml', await keygen(folder, 'ana', 'ben'));
    await keygen(folder, 'stranger');
    const environment = { MILLRACE_CONTROLLER_KEYS: keys };
    const file = folder.path('publish.json');
    const sign = (source: string, ...args: string[]) =>
      millrace(['policy', 'sign', source, '--out', file, ...args], { environment });
    expect(await sign(STARTER, '--key', folder.path('ana.pem'))).toMatchObject({ exitCode: 0 });
    const signed = folder.read('publish.json');
    const refused = await sign(file, '--key', folder.path('stranger.pem'));
    expect(refused).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(
        /no key of this id; nothing was written \(got "stranger"; allowed: ana, ben\).*--key-id/,
      ),
    });
    const named = await sign(file, '--key', folder.path('ben.pem'), '--key-id', 'ana');
    expect(named).toMatchObject({ exitCode: 2, err: expect.stringContaining('add --key-id ben') });
    expect(folder.read('publish.json')).toBe(signed);
    expect(await sign(file, '--key', folder.path('ben.pem'))).toMatchObject({ exitCode: 0 });
  });

  it('warns of a key that others may read', async () => {
    const folder = temporaryFolder();
    await keygen(folder, 'ana');
    chmodSync(folder.path('ana.pem'), 0o644);
    const { err, exitCode } = await millrace(['policy', 'sign', STARTER, '--key', folder.path('ana.pem')]);
    expect(exitCode).toBe(0);
    expect(err).toMatch(/warning: others may read the private key .*chmod 600/);
  });

  it('refuses a third signature, and a second of the same key', async () => {
    const folder = temporaryFolder();
    await keygen(folder, 'ana', 'ben', 'cleo');
    const file = folder.path('c.json');
    const sign = (source: string, by: string) =>
      millrace(['policy', 'sign', source, '--key', folder.path(`${by}.pem`), '--out', file]);
    await sign(STARTER, 'ana');
    expect(await sign(file, 'ana')).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining('with this key already'),
    });
    await sign(file, 'ben');
    expect(await sign(file, 'cleo')).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining('both signatures already'),
    });
  });

  it('refuses a policy that is not valid, with what is wrong', async () => {
    const folder = temporaryFolder();
    await keygen(folder, 'ana');
    const policy = folder.write('p.yaml', 'apiVersion: millrace/v1\n');
    const { out, err, exitCode } = await millrace([
      'policy',
      'sign',
      policy,
      '--key',
      folder.path('ana.pem'),
    ]);
    expect({ out, exitCode }).toEqual({ out: '', exitCode: 2 });
    expect(err).toMatch(/error: .*\n.*not valid on the fleet embedded: \d errors?/);
  });

  it.each([
    [[STARTER], /say which key signs \(allowed: --key <file>\).*policy keygen/],
    [
      [STARTER, '--key', '/no/such.pem'],
      /private key cannot be read: there is none of this name.*policy keygen/,
    ],
    [[STARTER, '--key', '/tmp'], /private key cannot be read: it is a folder.*policy keygen/],
    [[STARTER, '--key', 'KEY', '--out', '/no/such/c.json'], /its folder does not exist .*Make the folder/],
    [[STARTER, '--key-id', 'ana'], /--key-id names the key of --key/],
    [[STARTER, '--key', STARTER], /this is not a private key/],
    [['/no/such.yaml', '--key', 'KEY'], /there is none of this name/],
    [
      [STARTER, '--key', 'KEY', '--valid-for', '25h'],
      /for so long \(got "25 h"; allowed: --valid-for up to 24h\)/,
    ],
    [['COMMAND', '--key', 'KEY'], /scope: .*allowed: a file that --out of a millrace command wrote/],
  ])('%j is refused with what to do', async (args, message) => {
    const folder = temporaryFolder();
    await keygen(folder, 'ana');
    const command = folder.write('c.json', '{"commandId": "x"}');
    const given = args.map((arg) =>
      arg === 'KEY' ? folder.path('ana.pem') : arg === 'COMMAND' ? command : arg,
    );
    const { err, exitCode } = await millrace(['policy', 'sign', ...given]);
    expect(exitCode).toBe(2);
    expect(err).toMatch(message);
    expect(err).not.toMatch(/ {4}at |ENO|EIS/);
  });
});

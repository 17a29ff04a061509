import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { partitionForKey } from '../../../src/core/request/partition.ts';
import { millrace } from './cli.fixture.ts';
import { type ControlledInstallation, controlledInstallation } from './controlled-installation.ts';
import { temporaryFolder } from './temporary-folder.ts';

const ONE_POOL = readFileSync('examples/policies/one-pool.yaml', 'utf8');

let folder: ReturnType<typeof temporaryFolder>;
let control: ControlledInstallation;

const key = (id: string): string[] => ['--key', folder.path(`${id}.pem`)];

/** The one-pool policy in a version. */
function policy(version: number): string {
  const text = ONE_POOL.replace(/^version: .*$/m, `version: ${version}`);
  return folder.write(`p${version}.yaml`, text);
}

beforeEach(async () => {
  folder = temporaryFolder();
  const entries: string[] = [];
  for (const [id, ...flags] of [
    ['ana', '--scope', 'policy/*', 'keys'],
    ['ben', '--scope', 'policy/*', 'keys'],
    ['cleo', '--scope', 'policy/other'],
    ['tuner', '--role', 'controller'],
  ] as const) {
    const { out } = await millrace(['policy', 'keygen', id, ...flags, '--out', folder.path(`${id}.pem`)]);
    entries.push(out.replace(/^#.*\nkeys:\n/, ''));
  }
  await millrace(['policy', 'keygen', 'stranger', '--out', folder.path('stranger.pem')]);
  const keys = folder.write('keys.yaml', `keys:\n${entries.join('')}`);
  control = await controlledInstallation({ MILLRACE_CONTROLLER_KEYS: keys });
});

afterEach(() => control.close());

const revoke = (keyId: string, by: string, scope = 'keys') =>
  control.run(
    'control',
    'send',
    '--type',
    'REVOKE_KEY',
    '--scope',
    scope,
    '--body',
    JSON.stringify({ keyId }),
    ...key(by),
  );

describe('a controller that asks for signatures', () => {
  it('accepts a signed policy, in the name of its key', async () => {
    const { out, err, exitCode } = await control.run('policy', 'publish', policy(1), ...key('ana'));
    expect({ err, exitCode }).toEqual({ err: '', exitCode: 0 });
    expect(out).toMatch(
      /^accepted: policy-published in policy\/one-pool, epoch 1, term 1: one-pool@1 sha256:/,
    );
    const { out: history } = await control.run('policy', 'history', 'one-pool', '--json');
    expect(JSON.parse(history)).toMatchObject({ type: 'policy-published', actor: 'ana' });
    expect(await control.store.readPointer('policy/one-pool')).toMatchObject({
      epoch: 1,
      stable: { version: 1 },
    });
  });

  // Row 14 of the fault matrix: what is not signed as it must be is refused, and the log says so.
  it.each([
    ['no signature', [], /not signed, and this controller accepts no unsigned commands; sign it/],
    ['a key that it does not know', ['stranger'], /"stranger" is not in the controller's key file/],
    ['a key of another scope', ['cleo'], /cleo may not sign for policy\/one-pool; its scopes: policy\/other/],
    ["a controller's key", ['tuner'], /tuner is a controller's, and may not sign PUBLISH_POLICY/],
    ["another person's key under this name", ['stranger', '--key-id', 'ana'], /does not fit the command/],
  ] as const)('refuses %s', async (_what, [id, ...flags], reason) => {
    const signing = id === undefined ? [] : [...key(id), ...flags];
    const { out, exitCode } = await control.run('policy', 'publish', policy(1), ...signing);
    expect(exitCode).toBe(1);
    expect(out).toMatch(/^refused: PUBLISH_POLICY of policy\/one-pool: /);
    expect(out).toMatch(reason);
    const { out: history } = await control.run('policy', 'history', 'one-pool', '--json');
    expect(JSON.parse(history)).toMatchObject({
      type: 'command-refused',
      accepted: false,
      reason: expect.stringMatching(reason),
    });
    expect(await control.store.readPointer('policy/one-pool')).toBeUndefined();
  });

  // Row 15: somebody who can write to the topic appends what was good once more.
  it('drops a command that it decided, also as a new leader, and whatever it decided since', async () => {
    await control.run('policy', 'publish', policy(1), ...key('ana'));
    await control.run('policy', 'publish', policy(2), ...key('ana'));
    await control.run('policy', 'rollout', 'rollback', 'one-pool', ...key('ben'));
    const [first] = await control.installation.recordsOf('millrace.control.v1');
    const connection = await control.installation.open();
    const again = async (): Promise<void> => {
      const keyBytes = first?.key ?? Buffer.alloc(0);
      const partition = partitionForKey(keyBytes, 1);
      await connection.bus.produce({
        topic: 'millrace.control.v1',
        partition,
        key: keyBytes,
        value: first?.value ?? null,
      });
    };
    await again();
    await control.restart();
    await again();
    // What comes after it is decided, so it was too.
    expect((await control.run('policy', 'publish', policy(3), ...key('ana'))).exitCode).toBe(0);
    const { out } = await control.run('policy', 'history', 'one-pool', '--json');
    const published = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ type }) => type === 'policy-published');
    expect(published.map(({ evidence }) => evidence.policy.version)).toEqual([1, 2, 3]);
    await connection.close();
  });

  it('refuses a nonce that was used, also as a new leader', async () => {
    const file = folder.path('c.json');
    await control.run('policy', 'publish', policy(1), ...key('ana'), '--out', file);
    expect((await control.run('control', 'send', file)).exitCode).toBe(0);
    const sent = JSON.parse(folder.read('c.json'));
    folder.write('other.json', JSON.stringify({ ...sent, commandId: 'another' }));
    // The commandId is signed: the envelope cannot be used for another.
    expect((await control.run('control', 'send', folder.path('other.json'))).out).toContain(
      'does not fit the command',
    );
    await control.restart();
    expect((await control.run('control', 'send', file)).out).toContain('decided before');
  });

  it('takes a key out when another person says so, for good', async () => {
    expect((await revoke('ana', 'ben')).out).toBe('accepted: key-revoked in keys, epoch 0, term 1: ana\n');
    for (const restarts of [0, 1]) {
      if (restarts > 0) await control.restart();
      const { out, exitCode } = await control.run('policy', 'publish', policy(1), ...key('ana'));
      expect(exitCode).toBe(1);
      expect(out).toContain('the key ana is revoked');
    }
    expect((await control.run('policy', 'publish', policy(1), ...key('ben'))).exitCode).toBe(0);
    expect((await control.run('control', 'replay')).out).toMatch(/ 0 differ\n$/);
  });

  it('keeps the last key of a person, and lets no key for policies take keys out', async () => {
    expect((await revoke('ana', 'cleo')).out).toContain('cleo may not sign for keys');
    expect((await revoke('ana', 'ben', 'policy/one-pool')).out).toContain(
      'the scope of REVOKE_KEY is keys, not policy/one-pool',
    );
    expect((await revoke('nobody', 'ben')).out).toContain(
      'there is no key "nobody"; known: ana, ben, cleo, tuner',
    );
    for (const id of ['ana', 'cleo', 'tuner']) expect((await revoke(id, 'ben')).exitCode).toBe(0);
    expect((await revoke('ben', 'ben')).out).toContain('ben is the last key of a person');
  });

  it('wants a second person to go live against the rules', async () => {
    await control.run('policy', 'publish', policy(1), ...key('ana'));
    await control.run('policy', 'publish', policy(2), ...key('ana'));
    expect(
      (await control.run('policy', 'rollout', 'start', 'one-pool', '--policy-version', '2', ...key('ana')))
        .out,
    ).toMatch(/^accepted: rollout-started in policy\/one-pool, epoch 2, term 1: one-pool@2 /);
    const promote = ['policy', 'rollout', 'promote', 'one-pool', '--to-live', ...key('ana')];
    const alone = await control.run(...promote, '--before-passed');
    expect(alone.exitCode).toBe(1);
    expect(alone.out).toMatch(
      /needs the signature of a second person; against it: .*added to this command later counts for nothing: make it anew/,
    );
    const file = folder.path('promote.json');
    await control.run(...promote, '--out', file);
    await control.run('policy', 'sign', file, ...key('ben'), '--out', file);
    // Two people read it: nobody is asked once more.
    const together = await control.run('control', 'send', file);
    expect(together.out).toMatch(
      /^accepted: rollout-advanced in policy\/one-pool, epoch 3, term 1: to live; passed over: /,
    );
    expect((await control.run('policy', 'rollout', 'status', 'one-pool')).out).toMatch(/live {7}version 2 /);
    expect((await control.run('control', 'replay')).exitCode).toBe(0);
  });
});

describe('millrace policy rollout promote', () => {
  const promote = (...flags: readonly string[]) =>
    control.run('policy', 'rollout', 'promote', 'one-pool', ...flags, ...key('ana'));
  const promotions = async (): Promise<number> =>
    (await control.run('policy', 'history', 'one-pool')).out.match(/rollout-advanced/g)?.length ?? 0;

  beforeEach(async () => {
    for (const version of [1, 2]) await control.run('policy', 'publish', policy(version), ...key('ana'));
    await control.run('policy', 'rollout', 'start', 'one-pool', '--policy-version', '2', ...key('ana'));
  });

  it('of a stage that has not passed says what is missing, and asks first', async () => {
    const { out, err, exitCode } = await promote();
    expect({ out, exitCode }).toEqual({ out: '', exitCode: 2 });
    expect(err).toMatch(
      /^missing {4}900 s of the stage's 900 s are still to be observed\nmissing {4}0 of 10000 /,
    );
    expect(err).toMatch(
      /the stage has not passed; nothing was sent \(got "one-pool@2 in shadow, 0 %"; allowed: --before-passed, /,
    );
    expect(await promotions()).toBe(0);
    const forced = await promote('--before-passed');
    expect(forced).toMatchObject({ err: '', exitCode: 0 });
    expect(forced.out).toMatch(
      /^accepted: rollout-advanced .*: to stage 2; passed over: 900 s of the stage's/,
    );
  });

  it('on hold names both flags', async () => {
    await control.run('policy', 'rollout', 'hold', 'one-pool', '--reason', 'lunch', ...key('ana'));
    const { err } = await promote();
    expect(err).toMatch(/^on hold {4}lunch\nmissing /);
    expect(err).toContain('allowed: --before-passed and --over-hold');
    expect((await promote('--before-passed', '--over-hold')).exitCode).toBe(0);
  });

  it('asks as well where it is sent by its type, or from a file of one person', async () => {
    const typed = ['control', 'send', '--type', 'PROMOTE', '--scope', 'policy/one-pool', ...key('ana')];
    expect(await control.run(...typed)).toMatchObject({ out: '', exitCode: 2 });
    const file = folder.path('promote.json');
    expect((await promote('--out', file)).exitCode).toBe(0);
    expect(await control.run('control', 'send', file)).toMatchObject({ out: '', exitCode: 2 });
    expect(await promotions()).toBe(0);
    expect((await control.run('control', 'send', file, '--before-passed')).exitCode).toBe(0);
    expect((await control.run(...typed, '--before-passed')).exitCode).toBe(0);
  });

  it('that was refused for want of a second person says that it cannot be co-signed any more', async () => {
    const file = folder.path('promote.json');
    await promote('--to-live', '--out', file);
    expect((await control.run('control', 'send', file, '--before-passed')).out).toMatch(
      /a second person.*\nthe file is used up: a command is decided once, .*Make it anew with --out/,
    );
    await control.run('policy', 'sign', file, ...key('ben'), '--out', file);
    const { out, exitCode } = await control.run('control', 'send', file);
    expect(exitCode).toBe(1);
    expect(out).toMatch(/\(decided before, at [^)]*\)\nnothing was sent: a command is decided once, /);
    expect(out).toMatch(/Make it anew with --out, have everybody sign that \(millrace policy sign\)/);
    const json = await control.run('control', 'send', file, '--json');
    expect(JSON.parse(json.out)).toMatchObject({ status: 'refused', decidedBefore: true });
  });
});

describe('a controller without keys', () => {
  it('refuses everything, and warns that it will', async () => {
    await control.restart({});
    expect((await control.run('policy', 'publish', policy(1))).out).toMatch(
      /refuses every command: it has no keys; set controller\.keys to a key file/,
    );
    const { out } = await control.run('policy', 'publish', policy(1), ...key('ana'));
    expect(out).toContain('no key to verify signatures with; set controller.keys to a key file');
    expect(control.installation.telemetry.logs).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        message: expect.stringContaining('every control command will be refused'),
      }),
    );
  });

  it('does not start on a key file that is not valid', async () => {
    const keys = folder.write('bad.yaml', 'keys: [ana]');
    await expect(controlledInstallation({ MILLRACE_CONTROLLER_KEYS: keys })).rejects.toThrow(
      /bad\.yaml: keys\[0\]: this is no key/,
    );
  });
});

describe('a controller that was told to trust', () => {
  it('accepts what is not signed, and no signature that does not hold', async () => {
    await control.restart({
      MILLRACE_CONTROLLER_KEYS: folder.path('keys.yaml'),
      MILLRACE_CONTROLLER_ACCEPT_UNSIGNED: 'true',
    });
    expect((await control.run('policy', 'publish', policy(1))).exitCode).toBe(0);
    expect((await control.run('policy', 'publish', policy(2), ...key('stranger'))).out).toContain(
      'not in the controller',
    );
    const { out } = await control.run('policy', 'history', 'one-pool', '--json');
    expect(JSON.parse(out.split('\n')[0] ?? '')).toMatchObject({ actor: 'ana', accepted: true });
    const logged = control.installation.telemetry.logs.filter(({ message }) =>
      message.includes('accepted without a signature'),
    );
    expect(logged).toMatchObject([{ level: 'warn' }]);
  });
});

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SUPPORTED_TYPES } from '../../../src/stages/policy-controller/read-command.ts';
import { accepting, type ControlRoom, controlRoom } from '../client/control-room.ts';
import { type MemoryInstallation, memoryInstallation } from '../client/memory-installation.ts';
import { INSTALLATION, millrace } from './cli.fixture.ts';
import { temporaryFolder } from './temporary-folder.ts';

const POLICY = 'examples/policies/one-pool.yaml';

let installation: MemoryInstallation;
let room: ControlRoom | undefined;

beforeEach(async () => {
  installation = await memoryInstallation();
});

afterEach(async () => {
  await room?.close();
  room = undefined;
  await installation.close();
});

const refusing = () => ({
  type: 'command-refused',
  accepted: false,
  reason: 'version 1 is older than version 2',
});

async function run(...args: readonly string[]) {
  return millrace(args, {
    environment: { ...INSTALLATION, USER: 'ana' },
    transport: () => ({ open: () => installation.open() }),
  });
}

async function keyFile(): Promise<string> {
  const file = temporaryFolder().path('ana.pem');
  await millrace(['policy', 'keygen', 'ana', '--out', file]);
  return file;
}

describe('millrace policy publish', () => {
  it('sends the exact bytes, and says that they were accepted', async () => {
    room = await controlRoom(installation, accepting);
    const { out, exitCode } = await run('policy', 'publish', POLICY);
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^accepted: policy-published in policy\/one-pool, epoch 5, term 3\n$/);
    expect(room.commands).toHaveLength(1);
    expect(room.commands[0]).toMatchObject({ type: 'PUBLISH_POLICY', actor: 'ana', signature: null });
    expect(room.commands[0]?.body.toString()).toMatch(/^# .*\napiVersion: millrace\/v1/);
  });

  it('waits for the leader in charge, where one that was replaced still answers', async () => {
    room = await controlRoom(installation, (command) => {
      void room?.tell({ type: 'leadership-taken', term: 4, epoch: 6 });
      void room?.tell({
        ...accepting(command),
        scope: command.scope,
        commandId: command.commandId,
        type: 'void',
      });
      return { type: 'policy-published', accepted: false, reason: 'it is older', epoch: 6, term: 4 };
    });
    const { out, exitCode } = await run('policy', 'publish', POLICY);
    expect({ out, exitCode }).toEqual({
      exitCode: 1,
      out: 'refused: PUBLISH_POLICY of policy/one-pool: it is older\n',
    });
  });

  it('signs where a key is given', async () => {
    room = await controlRoom(installation, accepting);
    const { exitCode } = await run('policy', 'publish', POLICY, '--key', await keyFile());
    expect(exitCode).toBe(0);
    expect(room.commands[0]?.signature).toMatchObject({ keyId: 'ana', version: 1 });
  });

  it('says why it was refused', async () => {
    room = await controlRoom(installation, refusing);
    expect(await run('policy', 'publish', POLICY)).toMatchObject({
      exitCode: 1,
      out: 'refused: PUBLISH_POLICY of policy/one-pool: version 1 is older than version 2\n',
    });
  });

  it('prints JSON, with the event', async () => {
    room = await controlRoom(installation, () => ({ ...refusing(), evidence: '{"type":"command-refused"}' }));
    const { out, exitCode } = await run('policy', 'publish', POLICY, '--json');
    expect(exitCode).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      status: 'refused',
      scope: 'policy/one-pool',
      event: {
        accepted: false,
        reason: expect.any(String),
        evidence: { type: 'command-refused' },
        at: expect.any(String),
      },
    });
  });

  it('says what to do where no controller answers', async () => {
    room = await controlRoom(installation);
    const { out, err, exitCode } = await run('policy', 'publish', POLICY, '--timeout', '100ms');
    expect({ out, exitCode }).toEqual({ out: '', exitCode: 1 });
    expect(err).toMatch(
      /did not answer in time .*decided as soon as a controller leads: millrace control events --from-start --command \S+/,
    );
    const json = await run('policy', 'publish', POLICY, '--timeout', '100ms', '--json');
    expect(json.exitCode).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({ status: 'unanswered', event: null });
  });

  it('does not send what is not valid', async () => {
    room = await controlRoom(installation, accepting);
    const { out, err, exitCode } = await run('policy', 'publish', 'examples/policies/starter.yaml');
    expect({ out, exitCode }).toEqual({ out: '', exitCode: 2 });
    expect(err).toMatch(/unknown accelerator in the fleet "one-pool"/);
    expect(err).toMatch(
      /not valid on the fleet one-pool \(examples\/fleets\/one-pool\.yaml, from MILLRACE_FLEET\).*nothing was sent/,
    );
    expect(room.commands).toEqual([]);
  });

  it('writes to a file in place of sending, and control send sends that', async () => {
    room = await controlRoom(installation, accepting);
    const file = temporaryFolder().path('c.json');
    const written = await run('policy', 'publish', POLICY, '--out', file, '--json');
    expect(JSON.parse(written.out)).toMatchObject({ status: 'written', file, keys: [] });
    expect(room.commands).toEqual([]);
    expect(await run('control', 'send', file)).toMatchObject({
      exitCode: 0,
      out: expect.stringMatching(/^accepted: /),
    });
    const again = await run('control', 'send', file);
    expect(again.out).toMatch(/^accepted: .* \(decided before, at 2026-11-30T12:00:00\.000Z\)\n$/);
    expect(room.commands).toHaveLength(1);
  });

  it('needs an installation', async () => {
    const { err, exitCode } = await millrace(['policy', 'publish', 'examples/policies/starter.yaml']);
    expect(exitCode).toBe(2);
    expect(err).toContain('MILLRACE_KAFKA_BROKERS is not set');
  });
});

describe('millrace policy rollout', () => {
  it.each([
    [['start', 'starter', '--policy-version', '2'], 'START', '{"version":2}'],
    [
      ['start', 'policy/starter', '--policy-version', '2', '--waive', 'a', 'b'],
      'START',
      '{"version":2,"waive":{"leaves":["a","b"]}}',
    ],
    [
      ['start', 'starter', '--policy-version', '2', '--auto-promote', '--no-auto-rollback'],
      'START',
      '{"version":2,"autoPromote":true,"autoRollback":false}',
    ],
    [['promote', 'starter'], 'PROMOTE', '{}'],
    [['promote', 'starter', '--to-live', '--over-hold'], 'PROMOTE', '{"to":"live","overHold":true}'],
    [['hold', 'starter', '--reason', 'look'], 'HOLD', '{"reason":"look"}'],
    [['abort', 'starter', '--reason', 'bad'], 'ABORT', '{"reason":"bad"}'],
    [['rollback', 'starter'], 'ROLL_BACK', ''],
    [['rollback', 'starter', '--to-version', '1'], 'ROLL_BACK', '1'],
  ])('%j sends %s', async (args, type, body) => {
    room = await controlRoom(installation, accepting);
    expect(await run('policy', 'rollout', ...args)).toMatchObject({ exitCode: 0, err: '' });
    expect(room.commands[0]).toMatchObject({ type, scope: 'policy/starter' });
    expect(room.commands[0]?.body.toString()).toBe(body);
  });

  it.each([
    [['start', 'starter'], /required option '--policy-version <n>'/],
    [['hold', 'starter'], /required option '--reason <text>'/],
    [['promote', 'a b'], /not a name of a policy \(got "a b"/],
    [['rollback', 'starter', '--to-version', 'x'], /a whole number from 1/],
    [['promote', 'starter', '--timeout', '0s'], /a number above 0 with ms, s, m or h/],
    [['promot', 'starter'], /Did you mean promote/],
  ])('%j is refused with what is allowed', async (args, message) => {
    room = await controlRoom(installation, accepting);
    const { err, exitCode } = await run('policy', 'rollout', ...args);
    expect(exitCode).toBe(2);
    expect(err).toMatch(message);
    expect(room.commands).toEqual([]);
  });
});

describe('millrace control send', () => {
  it('offers what the controller acts on, and nothing else', async () => {
    const { out } = await run('control', 'send', '--help');
    const types = /what to do \(choices: ([^)]*)\)/.exec(out.replaceAll(/\s+/g, ' '))?.[1];
    expect(types?.match(/\w+/g)).toEqual([...SUPPORTED_TYPES]);
    expect(out).not.toMatch(/SET_TARGETS|OFFER_CAPACITY|RECLAIM_CAPACITY/);
  });

  it('sends any command, its body from a file too', async () => {
    room = await controlRoom(installation, () => ({ type: 'key-revoked', evidence: '{"keyId":"ana-2025"}' }));
    const body = temporaryFolder().write('b.json', '{"keyId":"ana-2025"}');
    const { out } = await run(
      'control',
      'send',
      '--type',
      'REVOKE_KEY',
      '--scope',
      'keys',
      '--body-file',
      body,
    );
    expect(out).toBe('accepted: key-revoked in keys, epoch 0, term 0: ana-2025\n');
    expect(room.commands[0]).toMatchObject({ type: 'REVOKE_KEY', scope: 'keys' });
    expect(room.commands[0]?.body.toString()).toBe('{"keyId":"ana-2025"}');
  });

  it.each([
    [[], /say what to send \(allowed: a command file, or --type and --scope\)/],
    [['--type', 'HOLD'], /say what to send/],
    [['--type', 'STOP', '--scope', 'x'], /Allowed choices are PUBLISH_POLICY, PUBLISH_MODEL, START/],
    [['--type', 'OFFER_CAPACITY', '--scope', 'x'], /Allowed choices are PUBLISH_POLICY/],
    [['--type', 'HOLD', '--scope', 'x', '--body', 'a', '--body-file', 'b'], /either --body or --body-file/],
    [['c.json', '--scope', 'x'], /a command file is sent as it is.*millrace policy sign/],
    [['/no/such.json'], /there is none of this name/],
    [['examples/policies/starter.yaml'], /is not JSON: .*It is a policy: see millrace policy --help/],
  ])('%j is refused with what is allowed', async (args, message) => {
    const { err, exitCode } = await run('control', 'send', ...args);
    expect(exitCode).toBe(2);
    expect(err).toMatch(message);
  });
});

describe('millrace control events', () => {
  it('prints what is there, by scope and by command', async () => {
    room = await controlRoom(installation);
    await room.tell({
      type: 'policy-published',
      epoch: 1,
      term: 2,
      commandId: 'c-1',
      evidence: '{"policy":{"name":"starter","version":2,"digest":"sha256:0123456789abcdef"}}',
    });
    await room.tell({
      type: 'command-refused',
      scope: 'policy/other',
      term: 2,
      accepted: false,
      reason: 'it is late',
      commandId: 'c-2',
    });
    const all = ['control', 'events', '--from-start', '--no-follow'];
    expect((await run(...all)).out).toBe(
      '2026-11-30T12:00:00.000Z  policy-published  policy/starter  epoch 1  term 2  ana  starter@2 sha256:01234567…\n' +
        '2026-11-30T12:00:00.000Z  command-refused  policy/other  epoch 0  term 2  ana  it is late\n',
    );
    expect((await run(...all, '--scope', 'policy/other')).out).toMatch(/^\S+ {2}command-refused [^\n]*\n$/);
    expect((await run(...all, '--command', 'c-1')).out).toMatch(/^\S+ {2}policy-published [^\n]*\n$/);
    expect((await run('control', 'events', '--from-start', '--max', '1')).out.match(/\n/g)).toHaveLength(1);
    expect(await run(...all, '--command', 'c-3')).toMatchObject({
      out: '',
      err: 'millrace: nothing was decided by the command c-3\n',
      exitCode: 0,
    });
    const [line = ''] = (await run(...all, '--json')).out.split('\n');
    expect(JSON.parse(line)).toMatchObject({
      type: 'policy-published',
      evidence: { policy: { version: 2 } },
    });
  });

  it('marks what a replaced leader still got into the log, whatever the scope that is asked for', async () => {
    room = await controlRoom(installation);
    const held = { type: 'rollout-held', evidence: '{"reasons":[{"text":"late"}]}' };
    await room.tell({ ...held, term: 1 });
    await room.tell({ type: 'leadership-taken', scope: 'controller', term: 2 });
    await room.tell({ ...held, term: 1 });
    await room.tell({ type: 'rollout-resumed', term: 1, commandId: '' });
    const types = [
      / {2}rollout-held {2}/,
      / {2}rollout-held \(void\) {2}/,
      / {2}rollout-resumed \(void\) {2}/,
    ];
    const scope = ['--scope', 'policy/starter'];
    const events = ['control', 'events', '--from-start', '--no-follow', ...scope];
    const history = ['policy', 'history', 'starter'];
    for (const args of [events, [...events, '--all'], history]) {
      const shown = (await run(...args)).out.trimEnd().split('\n').slice(-3);
      for (const [n, type] of types.entries()) expect(shown[n], args.join(' ')).toMatch(type);
    }
    for (const args of [events, history]) {
      const parsed = (await run(...args, '--json')).out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(parsed.map((event) => event.void)).toEqual([false, true, true]);
      expect(parsed[0]).not.toHaveProperty('isVoid');
    }
  });

  it('folds looks, which decide nothing, unless it is asked for each', async () => {
    room = await controlRoom(installation);
    const look = (atMs: number) => ({
      type: 'rollout-looked' as const,
      occurredAt: Date.parse('2026-11-30T12:00:00.000Z') + atMs,
      evidence: JSON.stringify({
        observation: { stable: { requests: 90 }, canary: { requests: atMs }, windowMs: 2_002.1953 },
      }),
    });
    for (let n = 0; n < 35; n += 1) await room.tell(look(n));
    await room.tell({ type: 'rollout-advanced', evidence: '{"to":2}' });
    for (let n = 50; n < 53; n += 1) await room.tell(look(n));
    const all = ['control', 'events', '--from-start', '--no-follow'];
    const { out } = await run(...all);
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => line.replace(/^\S+ {2}(\S+) {2}.*? ana/, '$1')),
    ).toEqual([
      'rollout-looked  90 stable, 0 canary requests in 2.0 s',
      'rollout-looked  30 looks since 2026-11-30T12:00:00.001Z, the last: 90 stable, 30 canary requests in 2.0 s',
      'rollout-looked  4 looks since 2026-11-30T12:00:00.031Z, the last: 90 stable, 34 canary requests in 2.0 s',
      'rollout-advanced  to stage 3',
      'rollout-looked  90 stable, 50 canary requests in 2.0 s',
      'rollout-looked  2 looks since 2026-11-30T12:00:00.051Z, the last: 90 stable, 52 canary requests in 2.0 s',
    ]);
    expect((await run(...all, '--all')).out.match(/\n/g)).toHaveLength(39);
    expect((await run(...all, '--json')).out.match(/\n/g)).toHaveLength(39);
  });

  it('follows until it is interrupted', async () => {
    const stop = new AbortController();
    const opened = installation.open;
    const running = millrace(['control', 'events', '--from-start'], {
      environment: INSTALLATION,
      transport: () => ({ open: () => opened() }),
      interruption: () => stop.signal,
    });
    const isOver = vi.fn();
    void running.then(isOver);
    room = await controlRoom(installation);
    await room.tell({ type: 'one' });
    expect(isOver).not.toHaveBeenCalled();
    stop.abort();
    expect(await running).toMatchObject({ exitCode: 0, err: '' });
  });
});

describe('millrace policy history', () => {
  it('shows what was decided, without the looks', async () => {
    room = await controlRoom(installation);
    const policy = { name: 'starter', version: 2, digest: 'sha256:0123456789abcdef' };
    await room.tell({ type: 'policy-published', epoch: 1, term: 1, evidence: JSON.stringify({ policy }) });
    await room.tell({ type: 'rollout-looked', actor: 'rollout' });
    await room.tell({ type: 'rollout-held', evidence: '{"reasons":[{"code":"person","text":"look"}]}' });
    await room.tell({ type: 'leadership-taken', scope: 'controller' });
    const { out, exitCode } = await run('policy', 'history', 'starter');
    expect(exitCode).toBe(0);
    const [head, first, second, ...rest] = out.split('\n');
    expect(head).toMatch(/^at +event +scope +epoch +term +by +what$/);
    expect(first).toMatch(/policy-published +policy\/starter +1 +1 +ana +starter@2 sha256:01234567…$/);
    expect(second).toMatch(/rollout-held .* look$/);
    expect(rest).toEqual(['']);
    expect((await run('policy', 'history', '--looks', '--json')).out.trim().split('\n')).toHaveLength(3);
    expect((await run('policy', 'history', '--max', '1')).out).not.toContain('policy-published');
  });

  it('says that nothing is known of a policy, and where nothing was decided', async () => {
    const { err, exitCode } = await run('policy', 'history', 'nobody');
    expect(exitCode).toBe(2);
    expect(err).toMatch(/nothing was ever decided about a policy of this name \(got "nobody"\)/);
    expect((await run('policy', 'history')).out).toBe('nothing was decided about any policy yet\n');
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ControlRoom, controlRoom } from '../client/control-room.ts';
import { type MemoryInstallation, memoryInstallation } from '../client/memory-installation.ts';
import { INSTALLATION, millrace } from './cli.fixture.ts';

let installation: MemoryInstallation;
let room: ControlRoom;

beforeEach(async () => {
  installation = await memoryInstallation();
  room = await controlRoom(installation);
});

afterEach(async () => {
  await room.close();
  await installation.close();
});

const T0 = Date.UTC(2026, 10, 30, 12);
let minutes = 0;
beforeEach(() => {
  minutes = 0;
});

const automatic = { actor: 'rollout', commandId: '' };

function tell(type: string, evidence: object = {}, rest: object = automatic): Promise<void> {
  minutes += 1;
  const occurredAt = T0 + minutes * 60_000;
  return room.tell({ type, evidence: JSON.stringify({ type, ...evidence }), occurredAt, ...rest });
}

const held = (code: string, text: string) => tell('rollout-held', { reasons: [{ code, text }] });
const resumed = () => tell('rollout-resumed', { waivedLeaves: [] });

const history = (args: readonly string[] = [], columns?: number) =>
  millrace(['policy', 'history', 'starter', ...args], {
    environment: INSTALLATION,
    transport: () => ({ open: () => installation.open() }),
    ...(columns === undefined ? {} : { columns }),
  });

const lines = (out: string): string[] => out.trimEnd().split('\n');

describe('a hold that comes and goes', () => {
  it('is one line for people, and every event in JSON', async () => {
    await tell('rollout-started');
    for (let time = 1; time <= 14; time += 1) {
      await held('slo-burn', `1.${time} % of all requests fail`);
      await resumed();
    }
    await held('slo-burn', '1.5 % of all requests fail');
    const shown = lines((await history()).out);
    expect(shown).toHaveLength(4);
    expect(shown[2]).toMatch(
      /^2026-11-30T12:29:00\.000Z {2}held, resumed +policy\/starter .*held and resumed 14 times since 2026-11-30T12:02:00\.000Z: 1\.14 % of all/,
    );
    expect(shown[3]).toMatch(/rollout-held .*1\.5 % of all requests fail$/);
    expect(lines((await history(['--json', '--max', '1000'])).out)).toHaveLength(30);
    // What is folded counts as one.
    expect(lines((await history(['--max', '2'])).out)[1]).toContain('held and resumed 14 times');
  });

  it('is not folded once, nor for another reason, nor where a person had a hand in it', async () => {
    await held('slo-burn', 'a');
    await resumed();
    await held('no-data', 'b');
    await resumed();
    const ana = { actor: 'ana', commandId: 'c-1' };
    await tell('rollout-held', { reasons: [{ code: 'no-data', text: 'b' }] }, ana);
    await resumed();
    const shown = lines((await history()).out);
    expect(shown.slice(1).map((line) => line.split(/ {2,}/)[1])).toEqual([
      ...[
        'rollout-held',
        'rollout-resumed',
        'rollout-held',
        'rollout-resumed',
        'rollout-held',
        'rollout-resumed',
      ],
    ]);
  });
});

describe('events that say the same', () => {
  it('are one line with their number', async () => {
    const refused = { accepted: false, reason: 'it is late', actor: 'ana' };
    for (const commandId of ['a', 'b', 'c']) await tell('command-refused', {}, { ...refused, commandId });
    await tell('command-refused', {}, { ...refused, commandId: 'd', actor: 'ben' });
    const shown = lines((await history()).out);
    expect(shown).toHaveLength(3);
    expect(shown[1]).toMatch(/ana +3 times since 2026-11-30T12:01:00\.000Z: it is late$/);
    expect(shown[2]).toMatch(/ben +it is late$/);
  });
});

describe('a history on a terminal', () => {
  const reason = `to go live against the rules: ${'x'.repeat(500)}`;

  it.each([200, 120, 80])('of %i columns fits', async (columns) => {
    await tell('command-refused', {}, { accepted: false, reason, actor: 'ana-2026 and ben-2026' });
    await tell('rollout-started', {
      candidate: { name: 'starter', version: 2, digest: 'sha256:0123456789' },
    });
    const { out } = await history([], columns);
    const shown = lines(out);
    expect(Math.max(...shown.map((line) => line.length))).toBeLessThanOrEqual(columns);
    expect(out).toMatch(/^at \(UTC\) +event +epoch +by/);
    expect(out).toContain('to go live against the rules: xxx');
    expect(out).toContain('starter@2 sha256:01234567…');
    expect(shown.at(-1)).toBe('cut to fit: --json has every decision whole');
    expect(out).not.toContain('policy/starter');
  });

  it('is whole where it is piped, and as JSON', async () => {
    await tell('command-refused', {}, { accepted: false, reason, actor: 'ana' });
    expect((await history()).out).toContain(reason);
    expect(JSON.parse((await history(['--json'], 80)).out)).toMatchObject({ reason });
  });

  it('of control events is cut likewise', async () => {
    await tell('command-refused', {}, { accepted: false, reason, actor: 'ana' });
    const { out } = await millrace(['control', 'events', '--from-start', '--no-follow'], {
      environment: INSTALLATION,
      transport: () => ({ open: () => installation.open() }),
      columns: 100,
    });
    expect(lines(out)).toEqual([
      '2026-11-30T12:01:00.000Z  command-refused  policy/starter  epoch 0  term 0  ana',
      expect.stringMatching(/^ {4}to go live against the rules: x{65}…$/),
    ]);
  });
});

import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type LiveState, renderLiveTable } from '../../../src/cli/live-table.ts';
import { tableLines } from '../../../src/cli/table.ts';

const STATE: LiveState = {
  elapsedMs: 75_400,
  ratePerSecond: 101.6,
  policy: 'starter@1',
  sample: { user: 'user-7', titles: ['City bottle cage', 'Slow ferry'] },
  url: 'http://127.0.0.1:1234',
  ended: false,
  ledger: {
    ingress: 120,
    outcomes: { scored: 110, degraded: 1, expired: 2, rejected: 3, deadLettered: 4 },
    inFlight: 0,
    duplicatesVisible: 0,
    duplicatesDropped: 0,
    unknown: 0,
    unreadable: 0,
    latencyMs: { p50: 4.25, p99: 40.4 },
    balanced: true,
  },
  view: {
    policyEpoch: 3,
    stallsPerSecond: 0,
    leafShares: new Map([
      ['rest', 0.75],
      ['simple', 0.25],
    ]),
    pools: [
      {
        pool: 'cpu',
        accelerator: 'cpu',
        simulated: false,
        workers: 2,
        queuedMs: 1.5,
        rate: 70.4,
        p50Ms: 3.1,
        p99Ms: 22.6,
      },
      {
        pool: 'a100',
        accelerator: 'gpu-a100',
        simulated: true,
        workers: 1,
        queuedMs: 0,
        rate: 30,
        p50Ms: 5,
        p99Ms: 9,
      },
    ],
  },
};

describe('the live table', () => {
  it('shows the books, the pools, the leaves and one result', () => {
    const lines = renderLiveTable(STATE, false);
    const text = lines.join('\n');
    expect(lines[0]).toBe(
      'millrace  01:15  102 requests/s  policy starter@1 (epoch 3)  http://127.0.0.1:1234',
    );
    expect(text).toContain(
      'ingress 120   scored 110   degraded 1   expired 2   rejected 3   dead-lettered 4   in flight 0',
    );
    expect(text).toContain('p50 4.25 ms   p99 40 ms');
    expect(text).toContain('leaves  rest 75 %   simple 25 %');
    expect(text).toContain('for user-7: City bottle cage · Slow ferry   (synthetic catalogue)');
  });

  it('aligns the pools under their header, and says which are simulated', () => {
    const lines = renderLiveTable(STATE, false);
    const header = lines.findIndex((line) => line.includes('accelerator'));
    const [cpu = '', a100 = ''] = lines.slice(header + 1);
    const end = (lines[header] ?? '').length;
    expect(cpu).toHaveLength(end);
    expect(a100).toHaveLength(end);
    expect(a100).toContain('gpu-a100 sim ');
    expect(lines.slice(header)).toContain('  sim: service times are simulated');
    expect(cpu.endsWith('1.50 ms')).toBe(true);
  });

  it('tells how to end it, until it has ended', () => {
    const last = (state: LiveState) => renderLiveTable(state, false).at(-1);
    expect(last(STATE)).toContain('Ctrl-C');
    expect(last({ ...STATE, ended: true })).not.toContain('Ctrl-C');
  });

  it('is plain text without colour, and the same text with it', () => {
    const plain = renderLiveTable(STATE, false).join('\n');
    const coloured = renderLiveTable(STATE, true).join('\n');
    expect(plain).not.toContain('\u001b');
    expect(coloured).toContain('\u001b[');
    expect(stripVTControlCharacters(coloured)).toBe(plain);
  });

  it('does without what there is not yet', () => {
    const { url: _, sample: __, ...rest } = STATE;
    const empty = { ...rest.ledger, latencyMs: { p50: null, p99: null } } as unknown as LiveState['ledger'];
    const state: LiveState = {
      ...rest,
      url: undefined,
      sample: undefined,
      ledger: empty,
      view: { pools: [], leafShares: new Map(), policyEpoch: 0, stallsPerSecond: 0 },
    };
    const text = renderLiveTable(state, false).join('\n');
    expect(text).toContain('p50 –   p99 –');
    expect(text).not.toContain('undefined');
    expect(text).not.toContain('synthetic');
  });
});

describe('a table', () => {
  it('aligns its columns, and leaves no blanks at the ends', () => {
    expect(
      tableLines(
        ['a', 'long', 'z'],
        [
          ['xxx', 'y', ''],
          ['', 'yy', 'zz'],
        ],
      ),
    ).toEqual(['a    long  z', 'xxx  y', '     yy    zz']);
  });
});

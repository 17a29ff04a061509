import { describe, expect, it } from 'vitest';
import { BusMeter } from '../../../../src/simulation/report/bus-meter.ts';

const carried = (records: number, inBytes: number, outBytes = inBytes) =>
  new Map([['t', { records, inBytes, outBytes }]]);

describe('a meter of the bus', () => {
  it('takes each topic at its busiest second, since it began', () => {
    const meter = new BusMeter(new Set());
    meter.begin(carried(50, 5_000), 10_000);
    meter.stepEnded(carried(60, 6_000), 10_500, false);
    meter.stepEnded(carried(70, 7_000), 11_000, false);
    meter.stepEnded(carried(170, 9_000, 20_000), 13_000, false);
    meter.stepEnded(carried(171, 9_001, 20_001), 14_000, true);
    expect(meter.busiest().get('t')).toEqual({
      recordsPerSecond: 50,
      inBytesPerSecond: 2_000,
      outBytesPerSecond: 6_500,
    });
  });

  it('leaves out what only the simulation reads, and topics that carried nothing', () => {
    const meter = new BusMeter(new Set(['t']));
    meter.begin(new Map(), 0);
    const idle = { records: 0, inBytes: 0, outBytes: 0 };
    meter.stepEnded(new Map([...carried(10, 1_000, 2_500), ['idle', idle]]), 1_000, false);
    expect([...meter.busiest()]).toEqual([
      ['t', { recordsPerSecond: 10, inBytesPerSecond: 1_000, outBytesPerSecond: 1_500 }],
    ]);
  });

  it('takes a run that is shorter than a second as a whole, and no rest of a longer one', () => {
    const short = new BusMeter(new Set());
    short.begin(new Map(), 0);
    short.stepEnded(carried(10, 1_000), 250, false);
    short.stepEnded(carried(20, 2_000), 500, true);
    expect(short.busiest().get('t')?.recordsPerSecond).toBe(40);
    const long = new BusMeter(new Set());
    long.begin(new Map(), 0);
    long.stepEnded(carried(10, 1_000), 1_000, false);
    long.stepEnded(carried(20, 2_000), 1_010, true);
    expect(long.busiest().get('t')?.recordsPerSecond).toBe(10);
  });
});

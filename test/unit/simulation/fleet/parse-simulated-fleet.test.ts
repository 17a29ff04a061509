import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { parseSimulatedFleet } from '../../../../src/simulation/fleet/parse-simulated-fleet.ts';

/** A fleet of one pool, with these lines in its class, its pool and beside its classes. */
function fleetText({ top = '', group = '', pool = '', kernels = '[dense]' } = {}): string {
  return `
apiVersion: millrace/v1
kind: SimulatedFleet
name: small
${top}
accelerators:
  gpu-a100:
    kernels: ${kernels}
    memories: [hbm]
    ${group}
    pools:
      - {pool: a100, capacityClass: dedicated${pool}}
`;
}

describe('a fleet of a simulation', () => {
  it('has what it says, and otherwise one slot, one of everything and the profile of its class', () => {
    const fleet = parseSimulatedFleet(fleetText());
    expect(fleet).toMatchObject({ hopMs: 1, routers: 1, extractors: 1, partitions: 4 });
    expect(fleet.pools).toMatchObject([
      { pool: 'a100', slots: 1, speed: 1, region: undefined, capacity: [], profile: { launchMs: 0.2 } },
    ]);
    const [pool] = fleet.pools;
    expect(Object.keys(pool?.profile.kernels ?? {})).toEqual(['dense']);
    expect(Object.keys(pool?.profile.memories ?? {})).toEqual(['hbm']);
  });

  it('takes service times of its own, by kernel and memory domain, and capacity over time', () => {
    const fleet = parseSimulatedFleet(
      fleetText({
        top: 'hopMs: 0.5\nrouters: 2',
        kernels: '[dense, sparse]',
        group: 'service: {launchMs: 1, requestMs: 2, candidateMs: 0.5, kernelFactors: {sparse: 0.7}}',
        pool: ', slots: 3, speed: 2, region: eu, capacity: [{at: 10s, slots: 1, notice: 2s}, {at: 20s, slots: 3}]',
      }),
    );
    expect(fleet).toMatchObject({ hopMs: 0.5, routers: 2 });
    expect(fleet.pools).toMatchObject([
      {
        slots: 3,
        speed: 2,
        region: 'eu',
        profile: { launchMs: 1, jitterSigma: 0, kernels: { dense: { factor: 1 }, sparse: { factor: 0.7 } } },
        capacity: [
          { atMs: 10_000, slots: 1, noticeMs: 2_000 },
          { atMs: 20_000, slots: 3, noticeMs: 0 },
        ],
      },
    ]);
  });

  it.each(['embedded', 'one-pool', 'simulated', 'reference'])('the example %s is one', (name) => {
    const { pools } = parseSimulatedFleet(readFileSync(`examples/fleets/${name}.yaml`));
    expect(pools.length).toBeGreaterThan(0);
  });

  it.each([
    ['a speed that is no number', { pool: ', speed: .nan' }, /speed, line 12, column \d+: .*NaN/],
    ['a speed that is infinite', { pool: ', speed: .inf' }, /speed, .*0\.01 … 1000/],
    ['a negative hop', { top: 'hopMs: -1' }, /hopMs, line 5.*got -1; allowed: a number, 0 … 1000/],
    ['no slot', { pool: ', slots: 0' }, /slots, .*got 0; allowed: a whole number, 1 … 1000/],
    ['half a slot', { pool: ', slots: 1.5' }, /slots, .*whole number/],
    ['a field that is unknown', { pool: ', slot: 1' }, /unknown field.*"slot".*slots/],
    [
      'changes out of order',
      { pool: ', slots: 2, capacity: [{at: 10s, slots: 1}, {at: 5s, slots: 2}]' },
      /capacity\[1\].at, .*order of their times.*later than 10000 ms/,
    ],
    [
      'more capacity than slots',
      { pool: ', slots: 2, capacity: [{at: 10s, slots: 3}]' },
      /capacity\[0\].slots, .*got 3; allowed: a whole number, 0 … 2/,
    ],
    ['kernels that no profile has', { kernels: '[warp]' }, /none of the kernels.*dense.*give `service`/],
    [
      'service times of nothing',
      { group: 'service: {launchMs: 0, requestMs: 0, candidateMs: 0}' },
      /all 0.*at least one above 0/,
    ],
    [
      'a factor of a kernel that it lacks',
      { group: 'service: {launchMs: 1, requestMs: 0, candidateMs: 0, kernelFactors: {sparse: 2}}' },
      /factor of what the class does not have.*"sparse"; allowed: dense/,
    ],
  ])('%s is refused, with its place and what is allowed', (_what, change, message) => {
    expect(() => parseSimulatedFleet(fleetText(change))).toThrow(message);
  });

  it('without service times is refused where its class has no profile', () => {
    const text = fleetText().replace('gpu-a100', 'tpu');
    expect(() => parseSimulatedFleet(text)).toThrow(/without service times.*"tpu".*gpu-a100/);
  });

  it('of more workers than fit is refused', () => {
    expect(() =>
      parseSimulatedFleet(fleetText({ pool: ', slots: 1000}\n      - {pool: b, capacityClass: dedicated' })),
    ).toThrow(/more workers.*1001.*1000/);
  });

  it('whatever the text, is one or is refused in words', () => {
    const piece = fc.constantFrom(
      'pool: ',
      'slots: ',
      '{',
      '}',
      '[',
      ']',
      '1e9',
      '-1',
      '.nan',
      ', ',
      '\n',
      'capacity: ',
      'at: 1s',
      '"',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        try {
          parseSimulatedFleet(fleetText({ pool: `, ${pieces.join('')}` }));
        } catch (error) {
          expect(error).toBeInstanceOf(MillraceError);
        }
      }),
      { numRuns: 300 },
    );
  });
});

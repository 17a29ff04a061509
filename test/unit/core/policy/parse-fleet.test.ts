import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { REFERENCE_FLEET } from '../../../../src/core/policy/fleet.ts';
import { parseFleet } from '../../../../src/core/policy/parse-fleet.ts';
import { DocumentError } from '../../../../src/core/policy/problem.ts';

const HEAD = 'apiVersion: millrace/v1\nkind: Fleet\nname: f\n';
const CPU = 'kernels: [dense], memories: [host]';

function problemsOf(text: string): string[] {
  try {
    parseFleet(text);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    expect(error.code).toBe('INVALID_CONFIG');
    return error.problems.map(({ path, what }) => `${path}: ${what}`);
  }
  return [];
}

describe('parseFleet', () => {
  it('reads accelerators and their pools', () => {
    const fleet = parseFleet(
      `${HEAD}accelerators:\n  cpu: {${CPU}, pools: [{pool: c, capacityClass: dedicated}]}\n  fpga: {kernels: [attention, dense], memories: [hbm, host], pools: [{pool: f, capacityClass: opportunistic, simulated: true}]}`,
    );
    expect(fleet.name).toBe('f');
    expect([...fleet.accelerators]).toEqual([
      [
        'cpu',
        {
          kernels: ['dense'],
          memories: ['host'],
          pools: [{ pool: 'c', capacityClass: 'dedicated', simulated: false }],
        },
      ],
      [
        'fpga',
        {
          kernels: ['attention', 'dense'],
          memories: ['hbm', 'host'],
          pools: [{ pool: 'f', capacityClass: 'opportunistic', simulated: true }],
        },
      ],
    ]);
  });

  it('has the reference fleet as a file, too', () => {
    expect(
      parseFleet(readFileSync(new URL('../../../../examples/fleets/reference.yaml', import.meta.url))),
    ).toEqual(REFERENCE_FLEET);
  });

  it.each([
    ['no accelerators', 'accelerators: {}', ['accelerators: a fleet without accelerators']],
    [
      'missing fields',
      'accelerators: {cpu: {kernels: [dense]}}',
      [
        'accelerators.cpu: the field `memories` is missing',
        'accelerators.cpu: the field `pools` is missing',
        'accelerators: a fleet without accelerators',
      ],
    ],
    [
      'no kernels, no memories, no pools',
      'accelerators: {cpu: {kernels: [], memories: [], pools: []}}',
      [
        'accelerators.cpu.pools: an accelerator class without a pool',
        'accelerators.cpu.kernels: at least one name is needed',
        'accelerators.cpu.memories: at least one name is needed',
      ],
    ],
    [
      'a name with a space',
      `accelerators: {"a b": {${CPU}, pools: [{pool: c, capacityClass: dedicated}]}}`,
      ['accelerators["a b"]: not a name'],
    ],
    [
      'a pool no topic could be named after',
      `accelerators: {cpu: {${CPU}, pools: [{pool: C.p, capacityClass: dedicated}, {pool: c, capacityClass: dedicated}]}}`,
      ['accelerators.cpu.pools[0].pool: not what is expected here'],
    ],
    [
      'a pool that no record could count by',
      `accelerators: {cpu: {${CPU}, pools: [{pool: constructor, capacityClass: dedicated}, {pool: c, capacityClass: dedicated}]}}`,
      ['accelerators.cpu.pools[0].pool: not what is expected here'],
    ],
    [
      'an unknown capacity class',
      `accelerators: {cpu: {${CPU}, pools: [{pool: c, capacityClass: spot}, {pool: d, capacityClass: dedicated}]}}`,
      ['accelerators.cpu.pools[0].capacityClass: not one of the names allowed here'],
    ],
    [
      'the same pool twice',
      `accelerators: {cpu: {${CPU}, pools: [{pool: c, capacityClass: dedicated}]}, mtia: {${CPU}, pools: [{pool: c, capacityClass: dedicated}, {pool: m, capacityClass: dedicated}]}}`,
      ['accelerators.mtia.pools[0]: the same pool twice'],
    ],
    ['a prototype', 'accelerators: {__proto__: {}}', ['accelerators.__proto__: a key that is never allowed']],
  ])('refuses %s', (_, text, expected) => {
    expect(problemsOf(`${HEAD}${text}\n`)).toEqual(expected);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { REFERENCE_FLEET } from '../../../../src/core/policy/fleet.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { validatePolicy } from '../../../../src/core/policy/validate.ts';
import type { AcceleratorProfile } from '../../../../src/core/profile/profile.ts';
import { checkInFleet, starterPolicy } from '../../../../src/core/profile/starter-policy.ts';
import { SIGNALS } from '../../../../src/core/signals/extract.ts';
import { profilesOfFleet } from './profile.arbitrary.ts';
import { profile, sparse, target, version } from './profile.fixture.ts';

const dense = (base: number, perCandidate: number) => target('dense', 'host', base, perCandidate);
const policyOf = (...profiles: readonly AcceleratorProfile[]): string =>
  starterPolicy('mine', profiles, REFERENCE_FLEET);

/** Conditions and targets of the branches, in order. */
function branches(text: string): string[] {
  return parsePolicy(text).tree.map((branch) => {
    if (!('to' in branch)) throw new Error('a branch of a starter policy is a leaf');
    const { accelerator, kernel, memory } = branch.to;
    return [branch.when?.text ?? 'rest', accelerator, kernel, memory, ...branch.fallback].join(' ');
  });
}

const cpu = profile('cpu', [
  version('ads', [dense(0.1, 0.01), target('sparse', 'host', 1, 1)], { sparse: [sparse(0.9, 0.128)] }),
]);
const gpu = profile('gpu-a100', [version('ads', [target('dense', 'hbm', 1, 0.001)])]);

describe('a starter policy', () => {
  it('sends few non-zeros to the sparse kernel, and the rest where it is the fastest', () => {
    expect(branches(policyOf(gpu, cpu))).toEqual([
      'nonZeroShare < 0.12 cpu sparse host gpu-a100',
      'candidateCount <= 106 cpu dense host gpu-a100',
      'rest gpu-a100 dense hbm cpu',
    ]);
  });

  it('declares the signals that it uses, and no others', () => {
    expect([...parsePolicy(policyOf(gpu, cpu)).signals.keys()]).toEqual(['nonZeroShare', 'candidateCount']);
    expect([...parsePolicy(policyOf(gpu)).signals.keys()]).toEqual([]);
  });

  it('says what was measured, on what, and where it was not measured at all', () => {
    const text = policyOf(cpu, { ...gpu, simulated: true });
    expect(text).toContain('# cpu: onnx-cpu, a machine; ads@1\n');
    expect(text).toContain('# gpu-a100: onnx-cpu, SIMULATED service times, of no device; ads@1\n');
    expect(text).toContain("overtakes the dense one at 90 % zeros of the candidates' inputs (ads@1, 1 × 64");
    expect(text).toContain('Up to here cpu/dense/host is the fastest; at 107 candidates it takes 1.2 ms');
  });

  it('has a threshold below which every version with the kernel is faster by it', () => {
    const version2 = version('feed', [dense(1, 1), target('sparse', 'host', 1, 1)], {
      sparse: [sparse(0.8, 0.3), sparse(0.96, 0.059)],
    });
    const both = { ...cpu, versions: [...cpu.versions, version2] };
    expect(branches(policyOf(both))[0]).toMatch(/^nonZeroShare < 0.05 cpu sparse/);
  });

  it.each([
    ['never was the faster one', sparse(null, null)],
    ['is below a hundredth', sparse(0.999, 0.0099)],
    [
      'was faster by less than a branch is worth',
      { ...sparse(0.9, 0.1), compared: [{ zeroShare: 0.99, ratio: 1.04 }] },
    ],
  ])('has no branch for the sparse kernel where it %s', (_, measured) => {
    const [ads] = cpu.versions;
    const versions = ads === undefined ? [] : [{ ...ads, sparse: [...ads.sparse, measured] }];
    expect(branches(policyOf({ ...cpu, versions }))).toEqual(['rest cpu dense host']);
  });

  it('takes the accelerator on which the sparse kernel is of most use', () => {
    const [ads] = cpu.versions;
    const on = (accelerator: string, below: number) =>
      profile(accelerator, ads === undefined ? [] : [{ ...ads, sparse: [sparse(1 - below, below)] }]);
    expect(branches(policyOf(on('cpu', 0.1), on('gpu-a100', 0.4)))[0]).toMatch(
      /^nonZeroShare < 0.4 gpu-a100 sparse/,
    );
  });

  it('names at most as many stand-ins as a policy may', () => {
    const names = Array.from({ length: 12 }, (_, n) => `x${n}`);
    const accelerators = new Map(
      names.map((name) => [name, { kernels: ['dense'], memories: ['host'], pools: [] }]),
    );
    const profiles = names.map((name, n) => profile(name, [version('ads', [dense(1 + n, 0)])]));
    const text = starterPolicy('mine', profiles, { name: 'many', accelerators });
    expect(branches(text)).toEqual(['rest x0 dense host x1 x2 x3 x4 x5 x6 x7 x8']);
  });

  it('stays a policy of few bytes where versions are many', () => {
    const versions = Array.from({ length: 1_000 }, (_, n) =>
      version(`family-of-a-long-name-${n}`.padEnd(128, '-'), [dense(1, 0)], { candidatesMax: 10 }),
    );
    const text = policyOf(profile('cpu', versions));
    expect(parsePolicy(text).tree).toHaveLength(1);
  });

  it.each([
    ['an accelerator', profile('mars', cpu.versions), /no such accelerator.*got "mars".*allowed: gpu-v100/],
    ['a kernel', profile('fpga', cpu.versions), /fpga of fleet reference has no such kernel.*got "sparse"/],
    [
      'a memory domain',
      profile('cpu', [version('ads', [target('dense', 'hbm', 1, 1)])]),
      /no such memory domain.*got "hbm"; allowed: host, l2/,
    ],
  ])('is refused for %s that the fleet lacks', (_, unknown, reason) => {
    expect(() => policyOf(unknown)).toThrow(reason);
  });

  it('is refused where no version was measured everywhere', () => {
    const other = profile('gpu-a100', [version('other', [dense(1, 1)])]);
    expect(() => policyOf(cpu, other)).toThrow(/no model version was measured on all.*cpu, gpu-a100/);
  });

  it('can be refused before anything is measured', () => {
    expect(() => checkInFleet(REFERENCE_FLEET, 'cpu', [{ kernel: 'dense', memory: 'l2' }])).not.toThrow();
    expect(() => checkInFleet(REFERENCE_FLEET, 'cpu', [{ kernel: 'dense', memory: 'hbm' }])).toThrow(/hbm/);
  });

  it('is a valid policy whose golden tests pass, whatever was measured', () => {
    fc.assert(
      fc.property(profilesOfFleet, ({ fleet, profiles }) => {
        const names = profiles.map(({ accelerator }) => accelerator);
        const hasRest = profiles.some(({ versions }) =>
          versions[0]?.targets.some(({ kernel }) => kernel !== 'sparse'),
        );
        fc.pre(hasRest);
        const document = parsePolicy(starterPolicy('null', profiles, fleet));
        expect(document.name).toBe('null');
        expect(document.tests).toHaveLength(document.tree.length);
        const problems = validatePolicy(document, fleet, SIGNALS, new Set());
        expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
        const used = document.tree.flatMap((branch) => ('to' in branch ? [branch.to.accelerator] : []));
        for (const accelerator of used) expect(names).toContain(accelerator);
      }),
    );
  });
});

import { describe, expect, it } from 'vitest';
import { tunedChild } from '../../../../src/core/policy/tuned-child.ts';
import { checkTunedOf } from '../../../../src/core/policy/tuned-of.ts';
import { childOfStep } from '../../../../src/core/tuning/child-of-step.ts';

const ROOT = `# by people
apiVersion: millrace/v1
kind: RoutingPolicy
name: feed
version: 1
signals: {activationBytes: int, sparsityRatio: double}
expect: {changedShare: [0, 0.5]}
tree:
  - id: large
    when: 'activationBytes > tune("floor", 100, min: 40, max: 250, step: 25%)'
    to: {accelerator: gpu-a100, kernel: dense, memory: hbm}
  - {id: rest, to: {accelerator: gpu-a100, kernel: dense}}
tests:
  - {signals: {activationBytes: 300}, leaf: large}
`;
const PARENT = `sha256:${'0'.repeat(64)}`;
const check = (root: string, child: string): void => checkTunedOf(Buffer.from(root), Buffer.from(child));

describe('what was tuned from a policy', () => {
  it('is known as such, over any number of steps, and back at home', () => {
    let child = ROOT;
    for (const [n, to] of [125, 156.25, 125, 100].entries()) {
      child = childOfStep(child, PARENT, { name: 'floor', to, version: n + 2 });
      expect(() => check(ROOT, child)).not.toThrow();
    }
    expect(() =>
      check(ROOT, tunedChild(ROOT, { parent: PARENT, version: 9, tuned: new Map([['floor', 50]]) })),
    ).not.toThrow();
  });

  const child = childOfStep(ROOT, PARENT, { name: 'floor', to: 125, version: 2 });
  it.each([
    ['another bound', ['max: 250', 'max: 9000']],
    ['another target', ['memory: hbm', 'memory: l2']],
    ['another name', ['name: feed', 'name: food']],
    ['another golden test', ['activationBytes: 300', 'activationBytes: 30']],
    ['one more field', ['version: 2', 'version: 2\nrollout: {shadow: 1s}']],
  ] as const)('has not %s', (_name, [from, to]) => {
    expect(child).toContain(from);
    expect(() => check(ROOT, child.replace(from, to))).toThrow(/more than its tuned constants/);
  });
});

import { describe, expect, it } from 'vitest';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { childOfStep } from '../../../../src/core/tuning/child-of-step.ts';

const PARENT = `# kept
apiVersion: millrace/v1
kind: RoutingPolicy
name: tuned
version: 4
signals: {a: double}
tree:
  - {id: high, when: 'a > tune("x", 10, min: 5, max: 20, step: 1) || a < tune("y", 1, min: 0, max: 2, step: 1)', to: {accelerator: cpu, kernel: dense}}
  - {id: rest, to: {accelerator: cpu, kernel: sparse}}
tuned: {y: 2}
tests: [{signals: {a: 100}, leaf: high}]
`;
const DIGEST = `sha256:${'a'.repeat(64)}`;

describe('childOfStep', () => {
  it('is the parent with one constant moved, and says where it comes from', () => {
    const text = childOfStep(PARENT, DIGEST, { name: 'x', to: 11, version: 5 });
    const child = parsePolicy(text);
    expect(child).toMatchObject({ name: 'tuned', version: 5, parent: DIGEST });
    expect(child.tuned).toEqual(
      new Map([
        ['y', 2],
        ['x', 11],
      ]),
    );
    expect(text).toContain('# kept');
  });

  it('names no constant that is at its default again', () => {
    const away = childOfStep(PARENT, DIGEST, { name: 'x', to: 11, version: 5 });
    expect(parsePolicy(childOfStep(away, DIGEST, { name: 'x', to: 10, version: 6 })).tuned).toEqual(
      new Map([['y', 2]]),
    );
  });

  it.each([
    ['a constant that it does not have', { name: 'z', to: 1, version: 5 }],
    ['a value out of its bounds', { name: 'x', to: 21, version: 5 }],
  ])('refuses %s', (_name, step) => {
    expect(() => childOfStep(PARENT, DIGEST, step)).toThrow(
      expect.objectContaining({ code: 'INVALID_POLICY' }),
    );
  });
});

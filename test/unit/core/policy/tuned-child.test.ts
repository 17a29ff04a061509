import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { compilePolicy } from '../../../../src/core/policy/compile.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { tunedChild } from '../../../../src/core/policy/tuned-child.ts';

const parent = `# who wrote it, and why
apiVersion: millrace/v1
kind: RoutingPolicy
name: p
version: 7 # seven
signals: {a: double}
expect: {changedShare: [0, 1]}
tree:
  - id: x
    when: 'a > tune("k", 2, min: 1, max: 4, step: 1)'
    to: {accelerator: cpu, kernel: dense}
  - id: rest
    to: {accelerator: cpu, kernel: dense}
`;
const digest = `sha256:${'0'.repeat(64)}`;
const change = (k: number) => ({ parent: digest, version: 8, tuned: new Map([['k', k]]) });

describe('tunedChild', () => {
  it('is a policy of its own that differs in the tuned constants only', () => {
    const text = tunedChild(parent, change(3));
    const [child, original] = [parsePolicy(text), parsePolicy(parent)];
    expect(child).toMatchObject({
      name: 'p',
      version: 8,
      parent: digest,
      expect: undefined,
      tree: original.tree,
      tunables: original.tunables,
    });
    expect(compilePolicy(child).tunables).toMatchObject([{ name: 'k', value: 3 }]);
    expect(text).toContain('# who wrote it, and why');
    expect(text).toContain('version: 8 # seven');
  });

  it('takes no version that the records of its requests could not carry', () => {
    expect(() => tunedChild(parent, { ...change(3), version: 2 ** 31 })).toThrow(/version/);
    expect(parsePolicy(tunedChild(parent, { ...change(3), version: 2 ** 31 - 1 })).version).toBe(2 ** 31 - 1);
  });

  it('can be tuned again, and from JSON', () => {
    const again = tunedChild(tunedChild(parent, change(3)), { ...change(4), version: 9 });
    expect(compilePolicy(parsePolicy(again)).tunables).toMatchObject([{ value: 4 }]);
    expect(again.match(/tuned:/g)).toHaveLength(1);
    const json = JSON.stringify({
      apiVersion: 'millrace/v1',
      kind: 'RoutingPolicy',
      name: 'p',
      version: 1,
      signals: { a: 'double' },
      tree: [
        {
          id: 'x',
          when: 'a > tune("k", 2, min: 1, max: 4, step: 1)',
          to: { accelerator: 'cpu', kernel: 'dense' },
        },
        { id: 'y', to: { accelerator: 'cpu', kernel: 'dense' } },
      ],
    });
    expect(compilePolicy(parsePolicy(tunedChild(json, change(3)))).tunables).toMatchObject([{ value: 3 }]);
  });

  it('refuses what would not be a policy', () => {
    expect(() => tunedChild(parent, change(5))).toThrow(MillraceError);
    expect(() => tunedChild(parent, { ...change(3), tuned: new Map([['j', 1]]) })).toThrow(
      'no condition has a tunable constant of this name',
    );
    expect(() => tunedChild(parent, { ...change(3), parent: 'md5:1' })).toThrow('parent');
    expect(() => tunedChild('a: 1', change(3))).toThrow(MillraceError);
  });
});

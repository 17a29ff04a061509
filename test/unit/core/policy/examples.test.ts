import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compilePolicy } from '../../../../src/core/policy/compile.ts';
import { REFERENCE_FLEET } from '../../../../src/core/policy/fleet.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { parseFleet } from '../../../../src/core/policy/parse-fleet.ts';
import { validatePolicy } from '../../../../src/core/policy/validate.ts';
import { SIGNALS } from '../../../../src/core/signals/extract.ts';

const examples = new URL('../../../../examples/', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, examples), 'utf8');
const policies = readdirSync(new URL('policies/', examples)).filter((name) => name.endsWith('.yaml'));

describe('the example policies', () => {
  it.each(policies)('%s stands on the reference fleet and on the embedded one, without a warning', (name) => {
    const document = parsePolicy(read(`policies/${name}`));
    expect(validatePolicy(document, REFERENCE_FLEET, SIGNALS)).toEqual([]);
    expect(validatePolicy(document, parseFleet(read('fleets/embedded.yaml')), SIGNALS)).toEqual([]);
  });

  it('has a policy with a single leaf on the CPU', () => {
    const { leaves, decide } = compilePolicy(parsePolicy(read('policies/one-pool.yaml')));
    expect(leaves.map(({ target }) => target)).toEqual([
      { accelerator: 'cpu', kernel: 'dense', memory: 'host' },
    ]);
    expect(decide(new Float64Array(0))).toBe(0);
  });
});

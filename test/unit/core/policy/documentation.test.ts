import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readCondition } from '../../../../src/core/policy/condition.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { parseFleet } from '../../../../src/core/policy/parse-fleet.ts';
import { validatePolicy } from '../../../../src/core/policy/validate.ts';

const page = readFileSync(new URL('../../../../docs/policy-language.md', import.meta.url), 'utf8');

function blocks(language: string): string[] {
  return [...page.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)].flatMap(([, info, text]) =>
    info === language && text ? [text] : [],
  );
}

const policies = blocks('yaml').filter((text) => text.includes('kind: RoutingPolicy'));
const fleets = blocks('yaml').filter((text) => text.includes('kind: Fleet'));
const lines = (language: string) => blocks(language).flatMap((text) => text.trim().split('\n'));

describe('docs/policy-language.md', () => {
  it('has policies, fleets and conditions, and nothing that is neither', () => {
    expect(policies.length).toBeGreaterThanOrEqual(5);
    expect(fleets.length).toBeGreaterThanOrEqual(1);
    expect(blocks('yaml')).toHaveLength(policies.length + fleets.length);
    expect(lines('cel').length).toBeGreaterThanOrEqual(10);
    expect(lines('cel refused').length).toBeGreaterThanOrEqual(5);
  });

  it.each(policies.map((text) => [/name: (.*)/.exec(text)?.[1], text]))(
    'the policy %s is valid, without a warning',
    (_, text) => {
      expect(validatePolicy(parsePolicy(text ?? ''))).toEqual([]);
    },
  );

  it.each(fleets.map((text) => [/name: (.*)/.exec(text)?.[1], text]))('the fleet %s is one', (_, text) => {
    expect(parseFleet(text ?? '').accelerators.size).toBeGreaterThan(0);
  });

  it.each([
    ...lines('cel').map((text) => [text, true] as const),
    ...lines('cel refused').map((text) => [text, false] as const),
  ])('%s is a condition: %s', (text, accepted) => {
    const { signals } = parsePolicy(policies.find((policy) => policy.includes('name: conditions')) ?? '');
    const { problems } = readCondition(text, signals);
    expect(problems.length === 0, problems.map(({ what }) => what).join('; ')).toBe(accepted);
  });
});

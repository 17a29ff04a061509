import { describe, expect, it } from 'vitest';
import { makeRoutableRequest } from '../../../../src/contracts/records.ts';
import { compilePolicy } from '../../../../src/core/policy/compile.ts';
import { REFERENCE_FLEET } from '../../../../src/core/policy/fleet.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { DecidingPolicy } from '../../../../src/stages/request-router/deciding-policy.ts';

const TARGET = 'to: {accelerator: cpu, kernel: dense, memory: host}';

function deciding(signals: string, when: string): DecidingPolicy {
  const text = `
apiVersion: millrace/v1
kind: RoutingPolicy
name: test
version: 1
signals: {${signals}}
tree:
  - {id: some, when: ${when}, ${TARGET}}
  - {id: rest, ${TARGET}}`;
  const compiled = compilePolicy(parsePolicy(text), { fleet: REFERENCE_FLEET });
  return new DecidingPolicy({
    ref: { digest: 'sha256:1', name: 'test', version: 1 },
    epoch: 1,
    compiled,
    source: 'store',
  });
}

describe('a request that another policy decided just before', () => {
  const requests = Array.from({ length: 200 }, (_, n) =>
    makeRoutableRequest({
      requestId: `request-${n}`,
      identity: { topic: 'millrace.ingress.v1', partition: 0, offset: n },
      model: 'ranker',
      signals: { biasMax: (n % 10) / 10, sparsityRatio: (n % 7) / 7 },
      candidateCount: 1,
      baselineCandidates: 1,
      payload: Buffer.alloc(0),
    }),
  );
  const stable = (): DecidingPolicy => deciding('biasMax: double', 'biasMax > 0.5');

  it.each([
    ['the same signals', () => deciding('biasMax: double', 'biasMax > 0.2')],
    ['other signals', () => deciding('sparsityRatio: double', 'sparsityRatio > 0.5')],
    [
      'more signals',
      () => deciding('biasMax: double, sparsityRatio: double', 'biasMax + sparsityRatio > 1.0'),
    ],
  ])('ends in the leaf that it ends in without it: %s', (_, make) => {
    const [before, candidate, alone] = [stable(), make(), make()];
    const leaves = new Set<number>();
    for (const request of requests) {
      before.decide(request);
      const leaf = candidate.decideAfter(before, request);
      leaves.add(leaf);
      expect(leaf).toBe(alone.decide(request));
    }
    expect(leaves.size).toBe(2);
  });
});

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { generateEd25519 } from '../../../src/adapters/system/ed25519.ts';
import { connect, embedded, fp32, int64, kafka, readFp32, readIds, signer } from '../../../src/wiring/sdk.ts';

const ONE_POOL = {
  fleet: 'examples/fleets/one-pool.yaml',
  policy: 'examples/policies/one-pool.yaml',
  seed: 1,
  telemetry: silentTelemetry(),
};

const REQUEST = {
  model: 'ranker',
  deadlineMs: 60_000,
  baselineCandidates: 2,
  candidateIds: int64('candidate_ids', [1001, 1002]),
  requestTensors: [fp32('user', [64], new Float32Array(64))],
  candidateTensors: [
    fp32(
      'item',
      [2, 32],
      Float32Array.from({ length: 64 }, (_, index) => Math.sin(index)),
    ),
  ],
};

describe('embedded()', () => {
  it('runs a pipeline that its clients share, and ends with the last of them', async () => {
    const transport = embedded(ONE_POOL);
    const producer = await connect({ transport });
    const reader = await connect({ transport });
    const results = reader.results();
    await results.ready;
    const result = await producer.score(REQUEST);
    expect(result).toMatchObject({ outcome: 'SCORED', model: 'ranker', candidatesScored: 2 });
    expect(result.candidateIds === null ? [] : readIds(result.candidateIds)).toEqual(['1001', '1002']);
    const scores = [...readFp32(result.scores)];
    expect(scores).toHaveLength(2);
    for (const score of scores) expect(score).toBeGreaterThan(0);
    expect((await results.next()).value).toMatchObject({ result: { requestId: result.requestId } });
    await producer.close();
    const again = await reader.score(REQUEST);
    expect(again.outcome).toBe('SCORED');
    await reader.close();
    const late = await connect({ transport });
    expect((await late.score(REQUEST)).identity.offset).toBe(0);
    await late.close();
  });

  it('takes commands, signed ones too, and tells what came of them', async () => {
    const client = await connect({ transport: embedded(ONE_POOL) });
    const key = signer({ keyId: 'ana', privateKeyPem: generateEd25519().privateKeyPem });
    const policy = readFileSync('examples/policies/one-pool.yaml', 'utf8').replace(
      /^version: .*$/m,
      'version: 7',
    );
    const events = client.control.events({ scope: 'policy/*' });
    await events.ready;
    const command = { scope: 'policy/one-pool', type: 'PUBLISH_POLICY', body: policy } as const;
    const commandId = await client.control.publish(command, { signer: key });
    expect((await events.next()).value).toMatchObject({
      commandId,
      accepted: true,
      type: 'policy-published',
    });
    await client.close();
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });

  it('refuses a policy that it cannot read, and can be tried again', async () => {
    const transport = embedded({ ...ONE_POOL, policy: 'no/such/policy.yaml' });
    for (let attempt = 0; attempt < 2; attempt += 1)
      await expect(connect({ transport })).rejects.toMatchObject({ code: 'INVALID_CONFIG' });
  });
});

describe('kafka()', () => {
  it.each([
    ['a broker without a port', { brokers: ['localhost'] }, /kafka\.brokers.*localhost.*host:port/],
    ['a prefix that topics cannot have', { brokers: ['h:1'], prefix: 'No Such' }, /prefix.*No Such/],
  ])('refuses %s', (_name, options, message) => {
    expect(() => kafka({ registryUrl: 'http://localhost:1', ...options })).toThrow(message);
  });

  it('says it as well where an option was left out', () => {
    // @ts-expect-error: brokers are needed
    expect(() => kafka({ registryUrl: 'http://localhost:1' })).toThrow(/^kafka\(\): brokers is empty/);
  });

  it.each([
    ['brokers', { brokers: [], registryUrl: 'http://localhost:1' }],
    ['registryUrl', { brokers: ['127.0.0.1:1'], registryUrl: '' }],
  ])('says that %s is empty, in the words of the SDK', (name, options) => {
    expect(() => kafka(options)).toThrow(
      expect.objectContaining({
        code: 'INVALID_CONFIG',
        message: expect.stringMatching(
          new RegExp(`^kafka\\(\\): ${name} is empty.*allowed: .*embedded\\(\\)`),
        ),
      }),
    );
    expect(() => kafka(options)).not.toThrow(/MILLRACE_|stack up/);
  });
});

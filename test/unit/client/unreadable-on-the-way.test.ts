import { expect, it, vi } from 'vitest';
import { connect } from '../../../src/client/client.ts';
import { fp32 } from '../../../src/client/tensors.ts';
import { carriedRequest, carrying } from '../../../src/contracts/headers.ts';
import { TOPICS, topicNames } from '../../../src/contracts/topics.ts';
import { createDeadLetters } from '../../../src/stages/dead-letters.ts';
import { createResultWriter } from '../../../src/stages/results.ts';
import { inbound } from '../stages/records.fixture.ts';
import { INGRESS, memoryInstallation, RESULTS } from './memory-installation.ts';

const FEATURES = 'millrace.features.v1';

it('a call is answered where a stage cannot read what another made of its request', async () => {
  const installation = await memoryInstallation();
  const client = await connect({ transport: { open: () => installation.open() } });
  const router = await installation.open();
  await router.codecs.register([[RESULTS, TOPICS['scored-results']]]);
  const deadLetters = createDeadLetters({
    stage: 'request-router',
    topics: topicNames(),
    results: createResultWriter(router.codecs.for('ScoredResult'), RESULTS, 4),
    payload: 'full',
    partitionsOf: () => 1,
    requestOf: () => expect.unreachable('nothing can be read'),
    requestIn: carriedRequest,
  });
  const result = client.score({
    requestId: 'r-1',
    model: 'ranker',
    baselineCandidates: 1,
    candidateTensors: [fp32('item', [1, 2], [1, 2])],
  });
  await vi.waitFor(async () => expect(await installation.requests()).toHaveLength(1));
  const [request] = await installation.requests();
  const [sent] = await installation.recordsOf(INGRESS);
  const { topic = '', partition = -1, offset = -1, key = null } = sent ?? {};
  const identity = { topic, partition, offset };
  const headers = carrying({}, { identity, resultPartition: request?.resultPartition ?? null });
  const record = inbound({
    topic: FEATURES,
    partition: 3,
    offset: 77,
    key,
    headers,
    value: Buffer.from('?'),
  });
  for (const output of deadLetters(record, undefined, 'UNKNOWN_SCHEMA', 'the id means another schema'))
    await router.bus.produce(output);
  expect(await result).toMatchObject({
    requestId: 'r-1',
    identity,
    outcome: 'DEAD_LETTERED',
    reason: { code: 'UNKNOWN_SCHEMA' },
  });
  await client.close();
  await router.close();
  await installation.close();
});

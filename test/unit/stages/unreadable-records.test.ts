import { expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { parseDeadLetter } from '../../../src/contracts/dead-letter.ts';
import { createTopicDelay } from '../../../src/core/latency/topic-delay.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import type { Headers, InboundRecord, OutboundRecord } from '../../../src/ports/message-bus.ts';
import { virtualClock } from '../../../src/simulation/virtual-clock.ts';
import { createDeadLetters } from '../../../src/stages/dead-letters.ts';
import { createResultWriter } from '../../../src/stages/results.ts';
import { runStage } from '../../../src/stages/run-stage.ts';
import { HandDrivenBus, settled } from './hand-driven-bus.ts';
import { codecs, inbound, resultOf, topics } from './records.fixture.ts';

async function start() {
  const bus = new HandDrivenBus();
  const clock = virtualClock();
  const taken: unknown[] = [];
  await runStage(
    {
      bus,
      codecs,
      topics,
      clock,
      random: seededRandom(1),
      telemetry: silentTelemetry(),
      topicDelay: createTopicDelay(),
    },
    {
      name: 'test',
      subscription: { group: 'g', topics: [topics.ingress()], startAt: 'earliest' },
      codec: codecs.for('ScoreRequest'),
      tries: 3,
      handle: (delivery) => taken.push(delivery),
      deadLetters: createDeadLetters({
        stage: 'test',
        topics,
        results: createResultWriter(codecs.for('ScoredResult'), topics.fixed('scored-results'), 1),
        payload: 'full',
        partitionsOf: () => 1,
        requestOf: ({ requestId }) => ({ requestId, resultPartition: null }),
      }),
    },
  );
  return { bus, clock, taken };
}

/** What a consumer of the dead-letter topic makes of it. */
const parsed = ({ headers = {}, ...rest }: OutboundRecord) =>
  parseDeadLetter({ ...rest, headers, offset: 0, timestampMs: 0, assignment: 0 });

async function ended(bus: HandDrivenBus, record: InboundRecord) {
  bus.deliver(record);
  const [letter, result] = bus.producing.map((each) => each.record);
  for (const each of bus.producing) each.store();
  await settled();
  if (letter === undefined) throw new Error('no dead letter');
  return { letter, result: resultOf(result) };
}

it('a record of a refused batch is a dead letter with the digest of the batch, and has its outcome', async () => {
  const { bus, taken } = await start();
  const unreadable = {
    code: 'TOO_LARGE' as const,
    reason: 'unpacks to more than 33554432 bytes',
    firstOffset: 40,
    lastOffset: 43,
    digest: 'ab'.repeat(32),
  };
  const { letter, result } = await ended(bus, inbound({ partition: 2, offset: 41, key: null, unreadable }));
  expect(taken).toEqual([]);
  expect(parsed(letter)).toMatchObject({
    topic: topics.ingress(),
    partition: 2,
    offset: 41,
    code: 'TOO_LARGE',
    message: `the batch of the offsets 40 to 43, sha256 ${unreadable.digest}, is refused: unpacks to more than 33554432 bytes`,
    value: Buffer.from(`sha256:${unreadable.digest}`),
    payload: 'hash',
    headers: {},
  });
  expect(letter.headers?.['millrace.batch.offsets']?.toString()).toBe('40-43');
  expect(result).toMatchObject({
    requestId: `${topics.ingress()}/2/41`,
    outcome: 'DEAD_LETTERED',
    identity: { topic: topics.ingress(), partition: 2, offset: 41 },
    reason: { code: 'TOO_LARGE' },
  });
  expect(bus.acknowledged.map(({ offset }) => offset)).toEqual([41]);
});

/** As an adapter that does not keep its promise would deliver them. */
it.each<[string, Record<string, unknown>]>([
  ['a header without a value', { note: null, kept: Buffer.from('x') }],
  ['a trace without a value', { traceparent: null }],
])(
  'a record is a dead letter without its headers where none can be made with them: %s',
  async (_, headers) => {
    const { bus } = await start();
    const { letter, result } = await ended(
      bus,
      inbound({ offset: 7, value: Buffer.from('no frame'), headers: headers as Headers }),
    );
    expect(parsed(letter)).toMatchObject({ offset: 7, code: 'NO_FRAME', headers: {} });
    expect(letter.value?.toString()).toBe('no frame');
    expect(result.outcome).toBe('DEAD_LETTERED');
    expect(bus.acknowledged.map(({ offset }) => offset)).toEqual([7]);
  },
);

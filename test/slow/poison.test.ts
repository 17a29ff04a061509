import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { schemaOf } from '../../src/contracts/headers.ts';
import { makeScoreRequest, type ScoredResult, type ScoreRequest } from '../../src/contracts/records.ts';
import type { InboundRecord } from '../../src/ports/message-bus.ts';
import { openSender } from '../../src/traffic/send-requests.ts';
import { type ToyRequest, toyFiles, toyItem, toyRequest, writeVersion } from '../unit/inference/toy-model.ts';
import { moreResults, startLoad } from './load.ts';
import { eventually, type RealPipeline, startRealPipeline } from './real-pipeline.ts';

const TRIES = 4;
const POISONED = 12;
const models = mkdtempSync(join(tmpdir(), 'millrace-poison-'));
let pipeline: RealPipeline;

beforeAll(async () => {
  cpSync('models/repository/ranker', join(models, 'ranker'), { recursive: true });
  await writeVersion(models, toyFiles());
  pipeline = await startRealPipeline(process.env as Record<string, string>, {
    environment: { MILLRACE_MODELS: models, MILLRACE_TRIES: String(TRIES) },
  });
});

afterAll(async () => {
  await pipeline?.close();
  rmSync(models, { recursive: true, force: true });
});

/** A request of the family whose graph itself fails for a `segment` outside of its table: no check of the tensors sees that. */
function request(requestId: string, toy: ToyRequest): ScoreRequest {
  const { requestTensors, candidateTensors } = toyItem(toy);
  return makeScoreRequest({
    ...{ requestId, model: 'toy', deadlineMs: 60_000, baselineCandidates: toy.items.length },
    ...{ requestTensors: [...requestTensors], candidateTensors: [...candidateTensors] },
  });
}

/** Everything that comes on the topic from now on. */
async function collect(topic: string): Promise<{ records: InboundRecord[]; close(): Promise<void> }> {
  const records: InboundRecord[] = [];
  const reader = await pipeline.client.bus.read({ topics: [topic], startAt: 'latest' }, (some) =>
    records.push(...some),
  );
  return { records, close: () => reader.close() };
}

/** Of which request a dispatch is, read off its bytes. */
async function requestIn({ value, headers }: InboundRecord): Promise<string> {
  const { codecs } = pipeline.client;
  const decode = () => codecs.for('Dispatch').decode(value, schemaOf(headers));
  const decoded = decode();
  if (decoded.status === 'schema-unknown') await codecs.learn(decoded);
  const again = decode();
  return again.status === 'ok' ? again.value.requestId : again.status;
}

describe('poison on real processes', () => {
  it('row 23: is tried so often and no more, becomes a dead letter, and its partition goes on, with those beside it', async () => {
    const { bus, codecs, topics } = pipeline.client;
    const deadLetters = await collect(topics.deadLetter(topics.dispatch('cpu')));
    const results = await collect(topics.fixed('scored-results'));
    const workers = ['worker-1', 'worker-2'].map((name) => pipeline.process(name).pid);
    const load = await startLoad(pipeline.client);
    await moreResults(load.ledger, 30);
    const send = await openSender(pipeline.client);
    // Side by side, so that poison and what is sound share batches.
    for (let n = 0; n < POISONED; n += 1) {
      const toy = toyRequest(n, 3, 2);
      await Promise.all([
        send(request(`sound-${n}`, toy)),
        send(request(`poison-${n}`, { ...toy, segment: 99 })),
      ]);
    }
    const ends = (): ScoredResult[] =>
      results.records.flatMap(({ value, headers }) => {
        const decoded = codecs.for('ScoredResult').decode(value, schemaOf(headers));
        return decoded.status === 'ok' && /^(poison|sound)-/.test(decoded.value.requestId)
          ? [decoded.value]
          : [];
      });
    await eventually(() => ends().length >= 2 * POISONED, 'poison and what is sound have ended');
    await moreResults(load.ledger, 100);
    const summary = await load.end();
    await Promise.all([deadLetters.close(), results.close()]);

    const poisoned = ends().filter(({ requestId }) => requestId.startsWith('poison-'));
    expect(poisoned).toHaveLength(POISONED);
    for (const { outcome, reason } of poisoned) {
      expect(outcome).toBe('DEAD_LETTERED');
      expect(reason).toMatchObject({
        code: 'POISON',
        message: expect.stringMatching(new RegExp(`^the model failed on it ${TRIES} times: `)),
      });
    }
    const sound = ends().filter(({ requestId }) => requestId.startsWith('sound-'));
    expect(sound.map(({ outcome }) => outcome)).toEqual(Array(POISONED).fill('SCORED'));
    // The bytes that came, where somebody can look at them.
    const names = await Promise.all(deadLetters.records.map(requestIn));
    expect(new Set(names)).toEqual(new Set(Array.from({ length: POISONED }, (_, n) => `poison-${n}`)));
    expect(names).toHaveLength(POISONED);
    expect(summary).toMatchObject({
      ...{ inFlight: 0, balanced: true, duplicatesVisible: 0 },
      outcomes: { deadLettered: POISONED, scored: summary.ingress - POISONED },
    });
    // No worker ended for it, and none has anything left that it would read again.
    expect(['worker-1', 'worker-2'].map((name) => pipeline.process(name).pid)).toEqual(workers);
    const topic = topics.dispatch('cpu');
    await eventually(async () => {
      const high = await bus.admin.watermarks(topic);
      const groups = [...high.keys()].map((slot) => `${topics.prefix}.worker.cpu.${slot}`);
      const committed = await Promise.all(groups.map((group) => bus.admin.committed(group, topic)));
      return committed.every((offsets, slot) => (offsets.get(slot) ?? 0) === high[slot]?.high);
    }, 'every slot is committed to its end');
  });
});

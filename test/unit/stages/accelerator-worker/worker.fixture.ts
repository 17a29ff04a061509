import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import type { Decoded, RecordCodec } from '../../../../src/contracts/codec.ts';
import type { Dispatch, DispatchAck, ScoreRequest } from '../../../../src/contracts/records.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import type { LoadedModel } from '../../../../src/ports/accelerator.ts';
import type { Clock } from '../../../../src/ports/clock.ts';
import type { FeatureSource } from '../../../../src/ports/feature-source.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';
import { AckSender } from '../../../../src/stages/accelerator-worker/ack-sender.ts';
import { WorkerWindows } from '../../../../src/stages/accelerator-worker/windows.ts';
import { Worker, type WorkerConfig } from '../../../../src/stages/accelerator-worker/worker.ts';
import { createResultWriter } from '../../../../src/stages/results.ts';
import { codecs, delivery, dispatch, inbound, type Recorded, topics } from '../records.fixture.ts';
import { type HandDrivenModel, handDrivenModel } from './model.fixture.ts';

/** Reads as the real one does; `schema` stands for bytes whose schema has to be looked up. */
class PayloadCodec implements RecordCodec<ScoreRequest> {
  readonly record = 'ScoreRequest';
  readonly headers = codecs.for('ScoreRequest').headers;
  known = false;

  encode(value: ScoreRequest): Buffer {
    return codecs.for('ScoreRequest').encode(value);
  }

  decode(bytes: Buffer | null): Decoded<ScoreRequest> {
    const text = bytes?.toString() ?? '';
    if (text === 'broken') throw new Error('the decoder broke');
    if (text === 'schema, then bad' && this.known)
      return { status: 'unreadable', code: 'MALFORMED', message: 'it is bad' };
    if (text === 'schema, then broken' && this.known) throw new Error('the decoder broke');
    if (text.startsWith('schema') && !this.known) return { status: 'schema-unknown', schemaId: 9 };
    return codecs.for('ScoreRequest').decode(text === 'schema' ? dispatch().payload : bytes);
  }
}

export interface WorkerOptions {
  config?: Partial<WorkerConfig>;
  model?: HandDrivenModel;
  /** Other models that are loaded. */
  others?: readonly LoadedModel[];
  features?: (clock: Clock) => FeatureSource;
}

export function startWorker(options: WorkerOptions = {}) {
  const clock = virtualClock();
  const telemetry = silentTelemetry();
  const model = options.model ?? handDrivenModel();
  const models = [model, ...(options.others ?? [])];
  const sent: DispatchAck[] = [];
  const registry = { away: true };
  const requestCodec = new PayloadCodec();
  const identity = { worker: 'w1', incarnation: 'i1', pool: 'cpu' };
  const windows = new WorkerWindows(identity, clock, seededRandom(1).stream('scores'));
  const acks: AckSender = new AckSender({
    ...identity,
    topic: topics.fixed('acks'),
    coalesceMs: 2,
    codec: codecs.for('DispatchAck'),
    clock,
    load: () => worker.load(),
    produce: (_topic, make) => {
      const decoded = codecs.for('DispatchAck').decode(make().value);
      if (decoded.status === 'ok') sent.push(decoded.value);
    },
  });
  const worker: Worker = new Worker(
    {
      worker: 'w1',
      pool: 'cpu',
      simulated: false,
      expectedSpeed: 1,
      batchRequestsMax: 4,
      batchCandidatesMax: 100,
      batchMsMax: 1_000,
      batchesInFlightMax: 1,
      tries: 3,
      featuresWaitMs: 20,
      overload: { slaMs: 0, order: 'strict' },
      ...options.config,
    },
    {
      clock,
      telemetry,
      codecs: {
        learn: async () => {
          if (registry.away) throw new Error('nobody there');
          requestCodec.known = true;
          return 'learned';
        },
      },
      requestCodec,
      results: createResultWriter(codecs.for('ScoredResult'), topics.fixed('scored-results'), 4),
      acks,
      windows,
      features: options.features?.(clock),
      modelFor: (family, version) =>
        models.find((loaded) => loaded.family === family && (version === null || loaded.version === version)),
    },
  );
  let offset = 0;
  const take = (
    fields: Partial<Dispatch> = {},
    times: { inTopicMs?: number; slot?: number } = {},
  ): Recorded<Dispatch> => {
    offset += 1;
    const taken = delivery(dispatch({ sequence: offset, requestId: `r${offset}`, ...fields }), {
      record: inbound({ topic: topics.dispatch('cpu'), partition: times.slot ?? 0, offset }),
      receivedAtMs: clock.monotonicMs(),
      inTopicMs: times.inTopicMs ?? 0,
    });
    worker.handle(taken);
    return taken;
  };
  /** Lets everything run that is due now. */
  const turn = (): Promise<void> => clock.advanceBy(0);
  return { clock, telemetry, worker, windows, acks, sent, model, registry, take, turn };
}

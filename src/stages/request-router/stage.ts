import { makeRouterWindow, type RoutableRequest } from '../../contracts/records.ts';
import type { InboundRecord, Reader } from '../../ports/message-bus.ts';
import type { ResultWriter } from '../results.ts';
import { runStage } from '../run-stage.ts';
import {
  openDeadLetters,
  openResults,
  produceAside,
  type Stage,
  type StageDeps,
  staleFetch,
} from '../stage.ts';
import type { ActivePolicy } from './active-policy.ts';
import { type RouteJob, Router, type RouterConfig } from './router.ts';

export interface RequestRouterConfig extends RouterConfig {
  unacknowledgedMax: number;
  deadLetterPayload: 'full' | 'hash';
  tries: number;
  windowMs: number;
}

/** A router with its side channels: heartbeats and acknowledgements in, windows of metrics out. */
export interface RouterRig {
  router: Router;
  results: ResultWriter;
  close(): Promise<void>;
}

/** Starts a router and its side channels, without its input: the features topic here, the extractor itself in the fused stage. */
export async function openRouter(
  config: RequestRouterConfig,
  deps: StageDeps,
  policy: ActivePolicy,
): Promise<RouterRig> {
  const results = await openResults(deps);
  const router = new Router(
    config,
    {
      clock: deps.clock,
      random: deps.random.stream('router.ties'),
      topics: deps.topics,
      dispatchCodec: deps.codecs.for('Dispatch'),
      results,
    },
    policy,
  );
  const readers = [await readStatus(deps, router), await readAcks(config, deps, router)];
  const cancelWindows = deps.clock.every(config.windowMs, publishWindows(config, deps, router));
  return {
    router,
    results,
    async close() {
      cancelWindows();
      router.close();
      await Promise.all(readers.map((reader) => reader.close()));
    },
  };
}

/** features → dispatch: decides each request by the policy and sends it to a slot. */
export async function createRequestRouterStage(
  config: RequestRouterConfig,
  deps: StageDeps,
  policy: ActivePolicy,
): Promise<Stage & { router: Router }> {
  const rig = await openRouter(config, deps, policy);
  const { router } = rig;
  const running = await runStage<RoutableRequest>(deps, {
    name: 'request-router',
    subscription: {
      group: `${deps.topics.prefix}.request-router`,
      topics: [deps.topics.fixed('features')],
      startAt: 'earliest',
      unacknowledgedMax: config.unacknowledgedMax,
    },
    codec: deps.codecs.for('RoutableRequest'),
    tries: config.tries,
    handle(delivery) {
      const request = delivery.value;
      const job: RouteJob = {
        request,
        record: delivery.record,
        receivedAtMs: delivery.receivedAtMs,
        inTopicMs: request.inTopicMs + delivery.inTopicMs,
        deadlineMs: delivery.receivedAtMs + request.budgetRemainingMs - delivery.inTopicMs,
        finish: (outputs) => delivery.finish(outputs),
        deadLetter: (code, message) => delivery.deadLetter(code, message),
        abandon: () => delivery.abandon(),
      };
      router.route(job);
    },
    abandon: (gone) => router.abandon(gone),
    deadLetters: await openDeadLetters(deps, [deps.topics.fixed('features')], {
      stage: 'request-router',
      results: rig.results,
      payload: config.deadLetterPayload,
      requestOf: (request) => request,
    }),
  });
  return {
    name: 'request-router',
    router,
    unready: () => router.unready() ?? staleFetch(running.sinceLastFetchMs()),
    inFlight: () => running.inFlight(),
    async close() {
      await running.close();
      await rig.close();
    },
  };
}

async function readStatus(deps: StageDeps, router: Router): Promise<Reader> {
  const codec = deps.codecs.for('PoolStatus');
  const take = (record: InboundRecord): void => {
    if (record.value === null) {
      router.onWorkerGone(record.key?.toString('utf8') ?? '');
      return;
    }
    const decoded = codec.decode(record.value);
    if (decoded.status === 'ok') router.onStatus(decoded.value);
    else if (decoded.status === 'schema-unknown') learn(deps, decoded.schemaId);
  };
  return deps.bus.read({ topics: [deps.topics.fixed('pool-status')], startAt: 'latest' }, (records) =>
    records.forEach(take),
  );
}

async function readAcks(config: RequestRouterConfig, deps: StageDeps, router: Router): Promise<Reader> {
  const codec = deps.codecs.for('DispatchAck');
  const options = {
    topics: [deps.topics.fixed('acks')],
    partitions: [config.ackPartition],
    startAt: 'latest' as const,
  };
  return deps.bus.read(options, (records) => {
    for (const record of records) {
      const decoded = codec.decode(record.value);
      if (decoded.status === 'ok') router.onAck(decoded.value);
      else if (decoded.status === 'schema-unknown') learn(deps, decoded.schemaId);
    }
  });
}

/** A heartbeat or an acknowledgement in a newer schema: the next one will be read. */
function learn(deps: StageDeps, schemaId: number): void {
  deps.codecs.learn(schemaId).catch((error: unknown) => {
    deps.telemetry.logger.warn({ schemaId, error: String(error) }, 'schema look-up failed');
  });
}

function publishWindows(config: RequestRouterConfig, deps: StageDeps, router: Router): () => void {
  const codec = deps.codecs.for('RouterWindow');
  const waiting = deps.telemetry.gauge({
    name: 'millrace_router_waiting_requests',
    help: 'Requests that wait for a credit or a worker.',
  });
  const dispatched = deps.telemetry.counter({
    name: 'millrace_dispatched_total',
    help: 'Dispatches by pool.',
    labels: ['pool'],
  });
  const stalls = deps.telemetry.counter({
    name: 'millrace_credit_stalls_total',
    help: 'Decisions that found no credit or no worker at once.',
  });
  const epoch = deps.telemetry.gauge({
    name: 'millrace_policy_epoch',
    help: 'Epoch of the policy in force.',
  });
  let sequence = 0;
  let startedMs = deps.clock.monotonicMs();
  let storing = false;
  return () => {
    router.sweep();
    waiting.set(router.waiting);
    epoch.set(router.policy.epoch);
    // While the broker is away the window stays open, so that windows do not pile up.
    if (storing) return;
    const nowMs = deps.clock.monotonicMs();
    const windowMs = nowMs - startedMs;
    startedMs = nowMs;
    const taken = router.counts.take();
    stalls.add(taken.stalls);
    for (const [pool, count] of Object.entries(taken.pools)) dispatched.add(count, { pool });
    sequence += 1;
    const window = makeRouterWindow({
      router: config.router,
      sequence,
      windowStartMs: deps.clock.wallMs() - windowMs,
      windowMs,
      policyDigest: router.policy.ref.digest,
      policyEpoch: router.policy.epoch,
      exposure: { STABLE: taken.requests },
      leaves: taken.leaves,
      pools: taken.pools,
      errors: taken.errors,
      creditStalls: taken.stalls,
    });
    storing = true;
    void produceAside(deps, {
      topic: deps.topics.fixed('routing-metrics'),
      partition: 0,
      key: Buffer.from(config.router),
      value: codec.encode(window),
    }).then(() => {
      storing = false;
    });
  };
}

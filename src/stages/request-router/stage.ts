import { carriedRequest } from '../../contracts/headers.ts';
import type { RoutableRequest } from '../../contracts/records.ts';
import { follow } from '../follow.ts';
import type { ResultWriter } from '../results.ts';
import { runStage } from '../run-stage.ts';
import { openDeadLetters, openResults, type Stage, type StageDeps, staleFetch } from '../stage.ts';
import type { ActiveCanary, ActivePolicy } from './active-policy.ts';
import type { RouteJob } from './route-job.ts';
import { Router, type RouterConfig } from './router.ts';
import { RouterWindows } from './router-windows.ts';
import { SlotBounds } from './slot-bounds.ts';
import { UnheldSlots } from './unheld-slots.ts';

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
  stable: ActivePolicy,
  canary?: ActiveCanary,
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
    stable,
    canary,
  );
  const bounds = new SlotBounds(deps, (status) => router.onStatus(status));
  const readers = [
    await follow(deps, 'pool-status', 'PoolStatus', (status) => bounds.take(status), {
      gone: (worker) => {
        bounds.gone(worker);
        router.onWorkerGone(worker);
      },
    }),
    await follow(deps, 'acks', 'DispatchAck', (ack) => router.onAck(ack), {
      partitions: [config.ackPartition],
    }),
  ];
  const windows = new RouterWindows(config.router, deps, router);
  const unheld = new UnheldSlots(router.fleet, () => bounds.known(), deps);
  const cancelWindows = deps.clock.every(config.windowMs, () => {
    windows.tick();
    unheld.observe();
  });
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
  stable: ActivePolicy,
  canary?: ActiveCanary,
): Promise<Stage & { router: Router }> {
  const rig = await openRouter(config, deps, stable, canary);
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
      requestIn: carriedRequest,
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

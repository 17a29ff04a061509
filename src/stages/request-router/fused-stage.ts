import type { ScoreRequest } from '../../contracts/records.ts';
import type { SignalExtractor } from '../../core/signals/extract.ts';
import { createExtractor } from '../feature-extractor/extract.ts';
import { followFamilyVersions } from '../feature-extractor/family-versions.ts';
import type { FeatureExtractorConfig } from '../feature-extractor/stage.ts';
import { runStage } from '../run-stage.ts';
import { openDeadLetters, type Stage, type StageDeps, staleFetch } from '../stage.ts';
import type { ActiveCanary, ActivePolicy } from './active-policy.ts';
import type { Router } from './router.ts';
import { openRouter, type RequestRouterConfig } from './stage.ts';

/**
 * ingress → dispatch in one process: extractor and router composed, one hop and one copy of the payload less than `split`.
 * The ingress offset is committed once the dispatch is stored.
 */
export async function createFusedStage(
  config: { extractor: FeatureExtractorConfig; router: RequestRouterConfig },
  deps: StageDeps & { signals: SignalExtractor },
  stable: ActivePolicy,
  canary?: ActiveCanary,
): Promise<Stage & { router: Router }> {
  const rig = await openRouter(config.router, deps, stable, canary);
  const { router, results } = rig;
  const versions = await followFamilyVersions(deps, config.extractor.families, config.extractor);
  const extract = createExtractor({ ...config.extractor, families: versions.families }, deps);
  const running = await runStage<ScoreRequest>(deps, {
    name: 'fused-router',
    subscription: {
      group: `${deps.topics.prefix}.feature-extractor`,
      topics: config.extractor.ingress,
      startAt: 'earliest',
      unacknowledgedMax: config.extractor.unacknowledgedMax,
    },
    codec: deps.codecs.for('ScoreRequest'),
    tries: config.extractor.tries,
    handle(delivery) {
      const extraction = extract(delivery);
      if (extraction.status === 'ended') {
        delivery.finish([results.record(extraction.result, extraction.resultPartition)]);
        return;
      }
      const { request } = extraction;
      router.route({
        request,
        record: delivery.record,
        receivedAtMs: delivery.receivedAtMs + request.extractMs,
        inTopicMs: request.inTopicMs,
        deadlineMs: delivery.receivedAtMs + request.budgetMs - delivery.inTopicMs,
        finish: (outputs) => delivery.finish(outputs),
        deadLetter: (code, message) => delivery.deadLetter(code, message),
        abandon: () => delivery.abandon(),
      });
    },
    abandon: (gone) => router.abandon(gone),
    deadLetters: await openDeadLetters(deps, config.extractor.ingress, {
      stage: 'fused-router',
      results,
      payload: config.extractor.deadLetterPayload,
      requestOf: (request) => ({ requestId: request.requestId, resultPartition: request.resultPartition }),
    }),
  });
  return {
    name: 'fused-router',
    router,
    unready: () => router.unready() ?? staleFetch(running.sinceLastFetchMs()),
    inFlight: () => running.inFlight(),
    async close() {
      await running.close();
      await rig.close();
      await versions.close();
    },
  };
}

import type { ScoreRequest } from '../../contracts/records.ts';
import type { FamilyContract } from '../../core/request/family.ts';
import type { RequestLimits } from '../../core/request/limits.ts';
import type { SignalExtractor } from '../../core/signals/extract.ts';
import { runStage } from '../run-stage.ts';
import { openDeadLetters, openResults, type Stage, type StageDeps, staleFetch } from '../stage.ts';
import { createExtractor, featuresRecord } from './extract.ts';
import { followFamilyVersions } from './family-versions.ts';

export interface FeatureExtractorConfig {
  /** Ingress topics to read: the default one and those of tenants. */
  ingress: readonly string[];
  families: ReadonlyMap<string, FamilyContract>;
  limits: RequestLimits;
  deadLetterPayload: 'full' | 'hash';
  unacknowledgedMax: number;
  tries: number;
  /** A worker without a heartbeat for so long is forgotten, and with it the published versions that only it had. */
  forgetWorkersMs: number;
}

/** ingress → features: decodes, checks, reads the signals; refusals and dead letters end here. */
export async function createFeatureExtractorStage(
  config: FeatureExtractorConfig,
  deps: StageDeps & { signals: SignalExtractor },
): Promise<Stage> {
  const results = await openResults(deps);
  const featuresTopic = deps.topics.fixed('features');
  const features = deps.codecs.for('RoutableRequest');
  const partitions = await deps.bus.partitionCount(featuresTopic);
  const versions = await followFamilyVersions(deps, config.families, config);
  const extract = createExtractor({ families: versions.families, limits: config.limits }, deps);
  const counter = deps.telemetry.counter({
    name: 'millrace_extracted_total',
    help: 'Requests read from ingress, by how the extractor ended them.',
    labels: ['outcome'],
  });
  const seconds = deps.telemetry.histogram({
    name: 'millrace_extraction_seconds',
    help: 'Checking a request and reading its signals.',
    buckets: [5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 1e-3],
  });
  const running = await runStage<ScoreRequest>(deps, {
    name: 'feature-extractor',
    subscription: {
      group: `${deps.topics.prefix}.feature-extractor`,
      topics: config.ingress,
      startAt: 'earliest',
      unacknowledgedMax: config.unacknowledgedMax,
    },
    codec: deps.codecs.for('ScoreRequest'),
    tries: config.tries,
    handle(delivery) {
      const extraction = extract(delivery);
      if (extraction.status === 'ended') {
        counter.add(1, { outcome: 'rejected' });
        delivery.finish([results.record(extraction.result, extraction.resultPartition)]);
        return;
      }
      counter.add(1, { outcome: 'routable' });
      seconds.observe(extraction.request.extractionUs / 1e6);
      delivery.finish([featuresRecord(extraction.request, features, featuresTopic, partitions)]);
    },
    deadLetters: await openDeadLetters(deps, config.ingress, {
      stage: 'feature-extractor',
      results,
      payload: config.deadLetterPayload,
      requestOf: (request) => ({ requestId: request.requestId, resultPartition: request.resultPartition }),
    }),
  });
  return {
    name: 'feature-extractor',
    unready: () => staleFetch(running.sinceLastFetchMs()),
    inFlight: () => running.inFlight(),
    async close() {
      await running.close();
      await versions.close();
    },
  };
}

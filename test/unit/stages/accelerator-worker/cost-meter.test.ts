import { describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../../src/adapters/memory/telemetry.ts';
import { samplesOf } from '../../../../src/adapters/prometheus/metrics-page.ts';
import { prometheusTelemetry } from '../../../../src/adapters/prometheus/telemetry.ts';
import { MOMENT_NAMES } from '../../../../src/core/signals/cost-moments.ts';
import type { BatchResult } from '../../../../src/ports/accelerator.ts';
import { CostMeter } from '../../../../src/stages/accelerator-worker/cost-meter.ts';
import { handDrivenModel } from './model.fixture.ts';

const METRIC = 'millrace_cost_moments_total';

function start() {
  const telemetry = silentTelemetry();
  const meter = new CostMeter('cpu', telemetry);
  const model = handDrivenModel();
  const computed = (computeMs: number, shape?: BatchResult['shape'], kernel = 'dense', version = '1'): void =>
    meter.computed({ ...model, family: 'ranker', version }, kernel, {
      ...{ items: [], computeMs, bytesMoved: 0 },
      ...(shape === undefined ? {} : { shape }),
    });
  const sum = (moment: string, kernel = 'dense', version = '1'): number =>
    telemetry.value(METRIC, { pool: 'cpu', model: 'ranker', version, kernel, moment });
  return { telemetry, meter, computed, sum };
}

const SHAPE = { requests: 2, candidates: 10, rows: 0, candidateRows: 0 };

describe('what batches took', () => {
  it('is added up by version and kernel, and raises the counters when it is published', () => {
    const { telemetry, meter, computed, sum } = start();
    computed(2, SHAPE);
    computed(4, { ...SHAPE, candidates: 20 });
    computed(1, SHAPE, 'sparse');
    computed(1, SHAPE, 'dense', '2');
    expect(telemetry.total(METRIC)).toBe(0);
    meter.publish();
    expect([sum('batches'), sum('1'), sum('N'), sum('1 N'), sum('N N')]).toEqual([2, 1.5, 10, 7.5, 50]);
    expect([sum('batches', 'sparse'), sum('N', 'sparse')]).toEqual([1, 10]);
    expect([sum('batches', 'dense', '2'), sum('N', 'dense', '2')]).toEqual([1, 10]);
  });

  it('has every moment, those that are 0 too: a page that lacks one was cut short', async () => {
    const telemetry = prometheusTelemetry({ service: 'a-test', level: 'silent' });
    const meter = new CostMeter('cpu', telemetry);
    meter.computed(handDrivenModel(), 'dense', { items: [], computeMs: 1, bytesMoved: 0, shape: SHAPE });
    meter.publish();
    const samples = samplesOf(await telemetry.metricsText(), METRIC);
    expect(samples.map(({ labels }) => labels.get('moment'))).toEqual(MOMENT_NAMES);
  });

  it('is published once', () => {
    const { meter, computed, sum } = start();
    computed(2, SHAPE);
    meter.publish();
    meter.publish();
    expect(sum('batches')).toBe(1);
    computed(2, SHAPE);
    meter.publish();
    expect([sum('batches'), sum('N')]).toEqual([2, 10]);
  });

  it('is nothing where the shape is not known, or no time passed', () => {
    const { telemetry, meter, computed } = start();
    computed(2);
    computed(0, SHAPE);
    computed(Number.NaN, SHAPE);
    meter.publish();
    expect(telemetry.total(METRIC)).toBe(0);
  });
});

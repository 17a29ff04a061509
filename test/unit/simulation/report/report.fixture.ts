import type { SimulationReport } from '../../../../src/simulation/report/simulation-report.ts';

/** A report of a hundred requests, of which the rest expired. */
export function madeReport(of: { name: string; p50Ms: number | null; scored: number }): SimulationReport {
  const { name, p50Ms, scored } = of;
  return {
    format: 1,
    simulated: true,
    seed: 1,
    durationMs: 100,
    fleet: 'small',
    policy: { name, version: 1, digest: name },
    traffic: 'made up',
    ledger: {
      ingress: 100,
      outcomes: { scored, degraded: 0, expired: 100 - scored, rejected: 0, deadLettered: 0 },
      inFlight: 0,
      duplicatesVisible: 0,
      duplicatesDropped: 0,
      unknown: 0,
      unreadable: 0,
      latencyMs: { p50: null, p99: null },
      balanced: true,
    },
    latency: {
      samples: 100,
      p50Ms,
      p90Ms: null,
      p99Ms: null,
      p999Ms: null,
      maxMs: null,
    },
    leaves: [],
    pools: [],
    series: {
      stepMs: 50,
      relativeError: 0.01,
      arrivals: [2, 3],
      outcomes: { scored: [1, 2], degraded: [0, 0], expired: [0, 0], rejected: [0, 0], deadLettered: [0, 0] },
      inFlight: [1, 0],
      p50Ms: [5, null],
      p99Ms: [5, null],
      pools: [{ pool: 'cpu', queued: [0, 1], workers: [1, 0], utilisation: [0.5, null] }],
    },
    notes: [],
  };
}

import { startStack } from '../src/local-stack/start-stack.ts';
import { compare, medianOf, ratio } from './pipeline/compare.ts';
import { readEffort } from './pipeline/options.ts';
import type { RunResult, Variant } from './pipeline/run-once.ts';
import type { BenchRow } from './run.ts';

const PER_SECOND = 200;
const REQUEST_BYTES = 2_048;
const VARIANTS = {
  relay: { kind: 'relay', layout: 'one-process', patched: true },
  pipeline: { kind: 'pipeline', layout: 'one-process' },
  'pipeline, fused': { kind: 'pipeline', layout: 'one-process', environment: { MILLRACE_TOPOLOGY: 'fused' } },
  'relay, a process each': { kind: 'relay', layout: 'process-each', patched: true },
  'pipeline, a process each': { kind: 'pipeline', layout: 'process-each' },
} as const satisfies Record<string, Variant>;

/** End to end at 200 requests/s, 2 KB, open loop from the intended send time: all stages on real Kafka beside a bare relay over the same hops. */
export async function run(options: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const { rounds, warmUpMs, measureMs } = readEffort(options, { rounds: 5, seconds: 10, warmUp: 4 });
  const stack = await startStack();
  try {
    const load = { kind: 'open' as const, perSecond: PER_SECOND };
    const compared = await compare(
      stack,
      VARIANTS,
      { requestBytes: REQUEST_BYTES, load, warmUp: { ms: warmUpMs, requests: 0 }, measureMs },
      rounds,
    );
    const rows = Object.entries(compared).flatMap(([name, results]) => latencyRows(name, results));
    const p50 = (result: RunResult): number => result.latencyMsP50;
    rows.push(
      {
        metric: 'p50, pipeline / bare relay, each in one process',
        value: ratio(compared.pipeline, compared.relay, p50),
        unit: '×',
        target: 1.3,
        relation: '<=',
      },
      {
        metric: 'p50, pipeline / bare relay, a process each',
        value: ratio(compared['pipeline, a process each'], compared['relay, a process each'], p50),
        unit: '×',
        target: 1.3,
        relation: '<=',
      },
    );
    return { rows };
  } finally {
    await stack.stop();
  }
}

function latencyRows(name: string, results: readonly RunResult[]): BenchRow[] {
  const peer = name.startsWith('relay') ? { peer: 'bare kafkajs relay' } : {};
  return [
    {
      metric: `p50, ${name}`,
      value: medianOf(results, ({ latencyMsP50 }) => latencyMsP50),
      unit: 'ms',
      ...peer,
    },
    {
      metric: `p99, ${name}`,
      value: medianOf(results, ({ latencyMsP99 }) => latencyMsP99),
      unit: 'ms',
      ...peer,
    },
  ];
}

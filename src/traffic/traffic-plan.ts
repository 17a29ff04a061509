import { MillraceError } from '../core/errors.ts';
import type { RandomSource, RandomStream } from '../ports/random.ts';
import type { Arrival } from './arrivals.ts';
import type { TrafficImporter } from './import/importer.ts';
import type { TraceSummary } from './import/importers.ts';
import type { TraceFile } from './import/trace-file.ts';
import { type Bursts, poissonArrivals, type RateStep, shapedRate, type Wave } from './rate-steps.ts';
import type { RequestShape } from './request-maker.ts';

/** Traffic that can be made as often as it is wanted: each time the same for the same seed. */
export interface TrafficPlan {
  /** In words, for a report. */
  readonly description: string;
  /** How long one pass of a trace takes; infinite for what is made up. */
  readonly spanMs: number;
  /** Draws from the streams `arrivals` and `shapes`. */
  arrivals(random: RandomSource): Iterator<Arrival>;
}

export interface MadeUpTraffic {
  readonly perSecond: number;
  readonly bursts: Bursts | undefined;
  readonly wave: Wave | undefined;
  readonly candidatesMin: number;
  readonly candidatesMax: number;
  readonly historyRowsMax: number;
}

/** Poisson arrivals; sizes are log-uniform, so that small requests are common and big ones exist. */
export function madeUpTraffic(options: MadeUpTraffic): TrafficPlan {
  const { perSecond, bursts, wave } = options;
  return {
    description: describeRate(perSecond, bursts, wave),
    spanMs: Number.POSITIVE_INFINITY,
    arrivals: (random) =>
      poissonArrivals(
        shapedRate(perSecond, { bursts, wave }),
        random.stream('arrivals'),
        drawnShapes(options, random.stream('shapes')),
      ),
  };
}

export interface TraceTraffic {
  readonly file: TraceFile;
  readonly importer: TrafficImporter;
  readonly summary: TraceSummary;
  /** Mean rate that the trace is brought to; its own where undefined. */
  readonly perSecond: number | undefined;
  /** Of requests whose size the trace does not tell. */
  readonly sizes: Pick<MadeUpTraffic, 'candidatesMin' | 'candidatesMax' | 'historyRowsMax'>;
}

/**
 * The traffic of a trace, over and over: with times its own, without any, or with only a rate, Poisson arrivals.
 * @throws MillraceError INVALID_CONFIG where the trace says nothing of times, and no rate is given; where a rate is to be brought to another and is 0
 */
export function traceTraffic(options: TraceTraffic): TrafficPlan {
  const { file, importer, summary, perSecond } = options;
  const what = `${summary.rows} rows of ${importer.format}`;
  switch (summary.kind) {
    case 'request':
      return replayed(options, what);
    case 'rate':
      return followedRate(options, what);
    case 'shape':
      if (perSecond === undefined)
        throw new MillraceError(
          'INVALID_CONFIG',
          `${file.path} says nothing of times, and no rate is given`,
          {
            advice: 'Give one with --rate',
          },
        );
      return {
        description: `${what} in their order, Poisson arrivals, ${perSecond}/s`,
        spanMs: Number.POSITIVE_INFINITY,
        arrivals: (random) =>
          poissonArrivals(shapedRate(perSecond, {}), random.stream('arrivals'), recordedShapes(options)),
      };
    default:
      return summary.kind satisfies never;
  }
}

function replayed({ file, importer, summary, perSecond }: TraceTraffic, what: string): TrafficPlan {
  const { rows, spanMs } = summary;
  // Between the end of a pass and the next one's start lies the mean pause.
  const meanMs = rows > 1 && spanMs > 0 ? spanMs / (rows - 1) : 1_000;
  const scale = perSecond === undefined ? 1 : 1_000 / perSecond / meanMs;
  return {
    description: `${what} at ${perSecond === undefined ? 'their own times' : `${perSecond}/s on average`}`,
    spanMs: rows * meanMs * scale,
    *arrivals() {
      for (let previousMs = 0; ; previousMs -= rows * meanMs) {
        for (const row of importer.rows(file)) {
          if (row.kind !== 'request') continue;
          yield { afterMs: (row.atMs - previousMs) * scale, shape: row.shape };
          previousMs = row.atMs;
        }
      }
    },
  };
}

function followedRate(options: TraceTraffic, what: string): TrafficPlan {
  const { file, importer, summary, perSecond, sizes } = options;
  const { spanMs, meanPerSecond } = summary;
  if (meanPerSecond === 0)
    throw new MillraceError('INVALID_CONFIG', `${file.path} has no request in it`, {
      value: `a mean of 0 requests per second over ${spanMs} ms`,
      allowed: 'two rows or more, and a rate above 0 before the last',
    });
  const factor = perSecond === undefined ? 1 : perSecond / meanPerSecond;
  function* steps(): Generator<RateStep, void, void> {
    for (;;) {
      let before: { atMs: number; perSecond: number } | undefined;
      for (const row of importer.rows(file)) {
        if (row.kind !== 'rate') continue;
        if (before !== undefined)
          yield { lengthMs: row.atMs - before.atMs, perSecond: before.perSecond * factor };
        before = row;
      }
    }
  }
  return {
    description: `${what}, Poisson arrivals${perSecond === undefined ? '' : `, ${perSecond}/s on average`}`,
    spanMs,
    arrivals: (random) =>
      poissonArrivals(steps(), random.stream('arrivals'), drawnShapes(sizes, random.stream('shapes'))),
  };
}

function* recordedShapes({ file, importer }: TraceTraffic): Generator<RequestShape, never, void> {
  for (;;) for (const row of importer.rows(file)) if (row.kind === 'shape') yield row.shape;
}

function* drawnShapes(
  { candidatesMin, candidatesMax, historyRowsMax }: TraceTraffic['sizes'],
  random: RandomStream,
): Generator<RequestShape, never, void> {
  for (;;) {
    const candidates = Math.round(candidatesMin * (candidatesMax / candidatesMin) ** random.next());
    yield { candidates, historyRows: random.below(historyRowsMax + 1) };
  }
}

function describeRate(perSecond: number, bursts: Bursts | undefined, wave: Wave | undefined): string {
  const parts = [
    `Poisson arrivals, ${perSecond}/s on average`,
    ...(bursts === undefined
      ? []
      : [`${bursts.factor} times the rate for ${bursts.lengthMs} ms of every ${bursts.everyMs} ms`]),
    ...(wave === undefined ? [] : [`a wave of ±${wave.depth * 100} % over ${wave.periodMs} ms`]),
  ];
  return parts.join(', ');
}

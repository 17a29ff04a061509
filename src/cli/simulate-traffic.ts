import { fileError, userFilePath } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
import { checkTrace, importerOf, trafficImporters } from '../traffic/import/importers.ts';
import { TraceFile } from '../traffic/import/trace-file.ts';
import type { Bursts, Wave } from '../traffic/rate-steps.ts';
import { DEFAULT_TRACE_MAPPING } from '../traffic/trace-inference-csv.ts';
import { madeUpTraffic, type TrafficPlan, traceTraffic } from '../traffic/traffic-plan.ts';
import { parseDuration } from './duration.ts';

export interface TrafficFlags {
  trace?: string;
  rate?: number;
  burst?: string;
  wave?: string;
  candidates: string;
  historyRows: number;
  tokensPerCandidate: number;
}

const CANDIDATES_MAX = 4_096;

/** @throws MillraceError INVALID_CONFIG for options that do not go together, and for a trace with a bad line: all of it is read before a run begins */
export function planTraffic(flags: TrafficFlags): TrafficPlan {
  const [candidatesMin, candidatesMax] = candidatesOf(flags.candidates);
  const sizes = { candidatesMin, candidatesMax, historyRowsMax: flags.historyRows };
  const bursts = flags.burst === undefined ? undefined : burstsOf(flags.burst);
  const wave = flags.wave === undefined ? undefined : waveOf(flags.wave);
  if (flags.trace === undefined) {
    if (flags.rate === undefined)
      throw new MillraceError('INVALID_CONFIG', 'there is no traffic', {
        allowed: '--rate <requests>, or --trace <file>',
      });
    return madeUpTraffic({ perSecond: flags.rate, bursts, wave, ...sizes });
  }
  if (bursts !== undefined || wave !== undefined)
    throw new MillraceError('INVALID_CONFIG', 'a trace has bursts and waves of its own', {
      value: flags.trace,
      advice: 'Leave out --burst and --wave, or --trace',
    });
  const { tokensPerCandidate } = flags;
  const file = new TraceFile(userFilePath(flags.trace));
  try {
    const importer = importerOf(file, trafficImporters({ ...DEFAULT_TRACE_MAPPING, tokensPerCandidate }));
    const summary = checkTrace(file, importer);
    return traceTraffic({ file, importer, summary, perSecond: flags.rate, sizes });
  } catch (error) {
    if (error instanceof MillraceError) throw error;
    throw fileError('the trace cannot be read', flags.trace, error, 'read');
  }
}

function candidatesOf(text: string): readonly [least: number, most: number] {
  const match = /^(\d{1,4})-(\d{1,4})$/.exec(text);
  const [least, most] = [Number(match?.[1]), Number(match?.[2])];
  if (least >= 1 && most >= least && most <= CANDIDATES_MAX) return [least, most];
  throw badOption('--candidates', text, `least-most, such as 8-256, within 1 … ${CANDIDATES_MAX}`);
}

function burstsOf(text: string): Bursts {
  const [factor = '', length = '', every = '', ...more] = text.split('/');
  const bursts = { factor: Number(factor), lengthMs: durationOf(length), everyMs: durationOf(every) };
  const isSound =
    bursts.factor > 0 && bursts.factor <= 1_000 && bursts.lengthMs > 0 && bursts.lengthMs < bursts.everyMs;
  if (isSound && more.length === 0) return bursts;
  throw badOption(
    '--burst',
    text,
    'factor/length/every, such as 3/2s/20s; a burst is shorter than what it comes in',
  );
}

function waveOf(text: string): Wave {
  const [depth = '', period = '', ...more] = text.split('/');
  const wave = { depth: depth === '' ? Number.NaN : Number(depth), periodMs: durationOf(period) };
  if (wave.depth >= 0 && wave.depth <= 1 && wave.periodMs > 0 && more.length === 0) return wave;
  throw badOption('--wave', text, 'depth/period, such as 0.5/24h, with a depth of 0 … 1');
}

function durationOf(text: string): number {
  try {
    return parseDuration(text);
  } catch {
    return Number.NaN;
  }
}

function badOption(option: string, value: string, allowed: string): MillraceError {
  return new MillraceError('INVALID_CONFIG', `${option} is not valid`, { value, allowed });
}

import type { AcceptedRequest } from '../request/check.ts';
import { murmur2 } from '../request/partition.ts';
import type { CostModel } from './cost-model.ts';
import type { RequestView } from './request-view.ts';
import type { Signal } from './signal.ts';
import * as table from './table.ts';
import { createViewReader } from './view-reader.ts';

export type SignalName = keyof typeof table;

/** Signals by name; NaN where one could not be computed. */
export type Signals = Record<SignalName, number>;

export interface NamedSignal extends Signal {
  readonly name: SignalName;
}

/** Every signal of the table, in the order of their names. */
export const SIGNALS: readonly NamedSignal[] = Object.entries(table)
  .map(([name, signal]) => ({ name: name as SignalName, ...signal }))
  .sort((a, b) => (a.name < b.name ? -1 : 1));

/** Names the signals and their formulas as one number: two extractors of the same number compute the same. */
export const SIGNALS_VERSION: number = versionOf(SIGNALS);

function versionOf(signals: readonly NamedSignal[]): number {
  const text = signals.map(({ name, version }) => `${name}@${version}`).join(',');
  return murmur2(Uint8Array.from(text, (letter) => letter.charCodeAt(0))) & 0x7fffffff;
}

/** Reads every signal of the table; `out` [SIGNALS.length] gets them in the table's order. */
export function extractSignals(view: RequestView, out: Float64Array): void {
  for (let i = 0; i < SIGNALS.length; i++) out[i] = SIGNALS[i]?.read(view) ?? Number.NaN;
}

/** Reads the signals of accepted requests; it owns scratch memory, so one serves one thread. */
export interface SignalExtractor {
  extract(request: AcceptedRequest): Signals;
  /** The same without an object for the result: `out` [SIGNALS.length] gets them in the order of SIGNALS. */
  extractInto(request: AcceptedRequest, out: Float64Array): void;
}

/**
 * `costModels` is looked up at each request, so that a model can be fitted again: by `family`, and by `family@version` for requests
 * that ask for a version; one that was published later is taken to cost what its family does.
 */
export function createSignalExtractor(costModels: ReadonlyMap<string, CostModel>): SignalExtractor {
  const reader = createViewReader();
  const values = new Float64Array(SIGNALS.length);
  const extractInto = (request: AcceptedRequest, out: Float64Array): void =>
    extractSignals(reader.read(request, costModelOf(request, costModels)), out);
  return {
    extractInto,
    extract(request) {
      extractInto(request, values);
      return byName(values);
    },
  };
}

function costModelOf(
  request: AcceptedRequest,
  costModels: ReadonlyMap<string, CostModel>,
): CostModel | undefined {
  const { family, version } = request;
  const ofFamily = costModels.get(family.family);
  return version === undefined ? ofFamily : (costModels.get(`${family.family}@${version}`) ?? ofFamily);
}

function byName(values: Float64Array): Signals {
  const signals: Partial<Signals> = {};
  for (let i = 0; i < SIGNALS.length; i++) {
    const name = SIGNALS[i]?.name;
    if (name !== undefined) signals[name] = values[i] ?? Number.NaN;
  }
  return signals as Signals;
}

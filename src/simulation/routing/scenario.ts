import { type Distribution, meanOf } from '../engine/draws.ts';

/** When requests come. Their rate on the whole follows from the load. */
export type Arrivals =
  | { readonly kind: 'poisson' }
  /** Poisson, but `factor` times as many in bursts of `onMs` on average as in the `offMs` on average between them. */
  | { readonly kind: 'bursts'; readonly factor: number; readonly onMs: number; readonly offMs: number };

export type Change = { readonly atMs: number } & (
  | { readonly kind: 'slow'; readonly worker: number; readonly factor: number }
  /** It takes nothing more and ends what it has; every router hears of it at once. */
  | { readonly kind: 'drain'; readonly worker: number }
  /** What it holds and what is under way to it is lost; routers hear of it `toldAfterMs` later. */
  | { readonly kind: 'die'; readonly worker: number; readonly toldAfterMs: number }
  /** A worker that was not there from the start. */
  | { readonly kind: 'join'; readonly worker: number }
  /** Its requests go to the other routers from then on. */
  | { readonly kind: 'router-dies'; readonly router: number }
);

/** Routers that dispatch to workers. Each worker serves one request at a time, first come first served. */
export interface RoutingScenario {
  readonly routers: number;
  /** What share of the requests each router gets; alike where it is undefined. */
  readonly routerShares?: readonly number[];
  /** One a worker: work ms done per ms. */
  readonly speeds: readonly number[];
  /** Into so many pools of as many workers each, in order, the workers are parted; a request is for one pool. */
  readonly pools: number;
  /** Work that comes, as a share of what all workers can do. */
  readonly load: number;
  readonly arrivals: Arrivals;
  /** Of a request, in ms at speed 1. */
  readonly work: Distribution;
  /** The standard deviation of ln(predicted / real work). */
  readonly predictionSigma: number;
  /** This share of the requests takes `factor` times its work, which nobody predicts. The load counts it in. */
  readonly stragglers: { readonly share: number; readonly factor: number };
  readonly dispatchMs: Distribution;
  readonly acknowledgementMs: Distribution;
  readonly statusPeriodMs: number;
  readonly changes: readonly Change[];
  /** Requests that arrive before are not counted. */
  readonly warmUpMs: number;
  /** No request arrives after. */
  readonly endMs: number;
}

export const NO_STRAGGLERS = { share: 0, factor: 1 } as const;

/** Requests per ms, on average. */
export function arrivalRate(scenario: RoutingScenario): number {
  const capacity = scenario.speeds.reduce((sum, speed) => sum + speed, 0);
  const { share, factor } = scenario.stragglers;
  return (scenario.load * capacity) / (meanOf(scenario.work) * (1 + share * (factor - 1)));
}

/** @throws RangeError that names what cannot be simulated */
export function checkScenario(scenario: RoutingScenario): void {
  const positive = (name: string, value: number): void => {
    if (!(value > 0 && value < Number.POSITIVE_INFINITY))
      throw new RangeError(`${name} is a number above 0, not ${value}`);
  };
  positive('load', scenario.load);
  positive('mean work', meanOf(scenario.work));
  positive('statusPeriodMs', scenario.statusPeriodMs);
  positive('endMs - warmUpMs', scenario.endMs - scenario.warmUpMs);
  for (const speed of scenario.speeds) positive('speed', speed);
  const shares = scenario.routerShares;
  if (shares !== undefined && shares.length !== scenario.routers)
    throw new RangeError(`${scenario.routers} routers have ${shares.length} shares: give one each`);
  const workers = scenario.speeds.length / scenario.pools;
  if (!(Number.isInteger(workers) && workers > 0))
    throw new RangeError(
      `${scenario.speeds.length} workers are not parted evenly into ${scenario.pools} pools`,
    );
  if (!(Number.isInteger(scenario.routers) && scenario.routers > 0))
    throw new RangeError(`routers is a whole number above 0, not ${scenario.routers}`);
  for (const change of scenario.changes) checkChange(scenario, change);
}

function checkChange(scenario: RoutingScenario, change: Change): void {
  const [what, number, below] =
    change.kind === 'router-dies'
      ? ['router', change.router, scenario.routers]
      : ['worker', change.worker, scenario.speeds.length];
  if (!(Number.isInteger(number) && number >= 0 && number < below))
    throw new RangeError(`a change of ${what} ${number}: there are those from 0 to ${below - 1}`);
  if (!(change.atMs >= 0)) throw new RangeError(`a change at ${change.atMs} ms: time begins at 0`);
}

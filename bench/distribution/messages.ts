/** What a subscriber of the benchmark is told when it is started. */
export interface SubscriberData {
  url: string;
  prefix: string;
  scope: string;
  index: number;
  /** Watches for how long its event loop stands still. That takes a whole core, so only one subscriber at a time should. */
  watchesPauses: boolean;
  /** Requests that wait in its router, to be decided anew by each swap. */
  waiting: number;
}

/** One swap: compiling the tree, where that is not done in a thread, and deciding anew what waits. */
export interface Swap {
  ms: number;
  /** The system gave the core to somebody else meanwhile. */
  isInterrupted: boolean;
}

/** Times are of the machine's monotonic clock, the same in every thread, ms. */
export type SubscriberMessage =
  | { kind: 'started'; index: number }
  | {
      kind: 'applied';
      index: number;
      epoch: number;
      canaryPercent: number | undefined;
      swap: Swap;
      atMs: number;
    }
  /** The longest turn of the event loop since the last message of this kind. */
  | { kind: 'pause'; index: number; pauseMs: number; atMs: number }
  | { kind: 'away'; index: number; atMs: number };

export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

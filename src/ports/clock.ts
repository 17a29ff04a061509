/** Ends a scheduled call; calling it twice, or after the call ran, does nothing. */
export type Cancel = () => void;

/** Time, passed in so that the same code runs live and in virtual time. */
export interface Clock {
  /** Milliseconds since the epoch, with fractions. May jump in either direction: for display and for records only. */
  wallMs(): number;
  /** Milliseconds since an arbitrary moment; never goes back. Every duration is measured with it. */
  monotonicMs(): number;
  /** Calls back once, no earlier than `delayMs` from now (0, and what is below it, = as soon as the current work is done). */
  after(delayMs: number, callback: () => void): Cancel;
  /** Calls back every `periodMs` until cancelled; a late call does not cause a burst of catch-up calls. */
  every(periodMs: number, callback: () => void): Cancel;
}

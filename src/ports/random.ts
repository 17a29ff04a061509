/** A stream of draws that depends on nothing but its seed and its name. */
export interface RandomStream {
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform integer in [0, below). */
  below(below: number): number;
}

/** Named streams from one seed: a new draw in one stream disturbs no other. */
export interface RandomSource {
  readonly seed: number;
  stream(name: string): RandomStream;
}

import { DDSketch } from '@datadog/sketches-js';
import { MillraceError } from '../errors.ts';
import { BIN_MAX, isSketch } from './sketch-form.ts';

/**
 * Quantiles within 1 % relative error that merge without loss (DDSketch: Masson, Rim, Lee, VLDB 2019).
 * Values are milliseconds ≥ 0; the wire form is DDSketch's protobuf, which its libraries in other languages read.
 */
export class LatencySketch {
  #sketch = new DDSketch({ relativeAccuracy: 0.01 });

  add(ms: number): void {
    this.#sketch.accept(Math.max(0, ms));
  }

  get count(): number {
    return this.#sketch.count;
  }

  /** The q-quantile in ms; 0 for an empty sketch. */
  quantileMs(q: number): number {
    return this.#sketch.count === 0 ? 0 : this.#sketch.getValueAtQuantile(q);
  }

  /** How many were longer than `ms`, to the sketch's accuracy. */
  countOver(ms: number): number {
    const { store, mapping } = this.#sketch;
    const key = ms > 0 ? mapping.key(ms) : Number.NEGATIVE_INFINITY;
    return store.bins.reduce((over, count, index) => (index + store.offset > key ? over + count : over), 0);
  }

  merge(other: LatencySketch): void {
    if (other.count > 0) this.#sketch.merge(other.#sketch);
  }

  toBytes(): Buffer {
    return this.#sketch.count === 0 ? Buffer.alloc(0) : Buffer.from(this.#sketch.toProto());
  }

  /** @throws MillraceError MALFORMED for what no sketch is written as, or one that does not merge with others */
  static fromBytes(bytes: Uint8Array): LatencySketch {
    const sketch = new LatencySketch();
    if (bytes.byteLength === 0) return sketch;
    if (!isSketch(bytes, sketch.#sketch.mapping.gamma))
      throw new MillraceError('MALFORMED', 'that is no sketch of latencies', {
        value: bytes,
        allowed: `DDSketch with a relative accuracy of 1 %, whole counts, and bins of ±${BIN_MAX}`,
      });
    sketch.#sketch = DDSketch.fromProto(bytes);
    return sketch;
  }
}

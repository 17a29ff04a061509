import { Buffer } from 'node:buffer';
import { SCORE_BINS, scoreBin } from './score-bin.ts';

const VARINT_BYTES_MAX = 5;
const COUNT_MAX = 2 ** 32;

/**
 * How many scores lie in each bin (`scoreBin`); histograms merge without loss. The wire form lists the bins that have any, in their order: the
 * distance from the bin before (from -1 for the first) less 1, then the count, both as unsigned LEB128.
 */
export class ScoreHistogram {
  readonly #counts = new Map<number, number>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** @param score finite */
  add(score: number): void {
    this.#addTo(scoreBin(score), 1);
  }

  merge(other: ScoreHistogram): void {
    for (const [bin, count] of other.#counts) this.#addTo(bin, count);
  }

  /** Bins that have any, in their order, with their counts. */
  entries(): readonly (readonly [bin: number, count: number])[] {
    return [...this.#counts].sort(([a], [b]) => a - b);
  }

  /** Empty where there is no score. */
  toBytes(): Buffer {
    const bytes: number[] = [];
    let before = -1;
    for (const [bin, count] of this.entries()) {
      pushVarint(bytes, bin - before - 1);
      pushVarint(bytes, count);
      before = bin;
    }
    return Buffer.from(bytes);
  }

  /** Undefined for what no histogram is written as. */
  static fromBytes(bytes: Uint8Array): ScoreHistogram | undefined {
    const histogram = new ScoreHistogram();
    let bin = -1;
    for (let at = 0; at < bytes.length; ) {
      const gap = readVarint(bytes, at);
      const count = gap && readVarint(bytes, gap.end);
      if (count === undefined || gap === undefined) return undefined;
      bin += gap.value + 1;
      if (bin >= SCORE_BINS || count.value === 0) return undefined;
      histogram.#addTo(bin, count.value);
      at = count.end;
    }
    return histogram;
  }

  #addTo(bin: number, count: number): void {
    this.#counts.set(bin, (this.#counts.get(bin) ?? 0) + count);
    this.#count += count;
  }
}

function pushVarint(bytes: number[], value: number): void {
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
}

function readVarint(bytes: Uint8Array, start: number): { value: number; end: number } | undefined {
  let value = 0;
  for (let i = 0; i < VARINT_BYTES_MAX; i++) {
    const byte = bytes[start + i];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) return value < COUNT_MAX ? { value, end: start + i + 1 } : undefined;
  }
  return undefined;
}

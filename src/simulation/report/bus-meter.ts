import type { TopicTraffic } from '../../adapters/memory/bus.ts';
import type { TopicLoad } from './kafka-plan.ts';

/** Shorter blocks show the rhythm of heartbeats rather than the load. */
const BLOCK_MS_MIN = 1_000;

type Rates = Pick<TopicLoad, 'recordsPerSecond' | 'inBytesPerSecond' | 'outBytesPerSecond'>;

/** Follows what the topics of a bus carry, by what it has counted since it began; each topic is taken at its busiest. */
export class BusMeter {
  readonly #readOnceMore: ReadonlySet<string>;
  readonly #most = new Map<string, Rates>();
  #before: ReadonlyMap<string, TopicTraffic> = new Map();
  #sinceMs = 0;

  /** @param readOnceMore topics that the simulation itself reads once, and nobody would live */
  constructor(readOnceMore: ReadonlySet<string>) {
    this.#readOnceMore = readOnceMore;
  }

  begin(traffic: ReadonlyMap<string, TopicTraffic>, nowMs: number): void {
    this.#before = traffic;
    this.#sinceMs = nowMs;
  }

  /** @param isLast also takes a block that is shorter than a second, where it is the only one */
  stepEnded(traffic: ReadonlyMap<string, TopicTraffic>, nowMs: number, isLast: boolean): void {
    const lastedMs = nowMs - this.#sinceMs;
    if (lastedMs < BLOCK_MS_MIN && !(isLast && this.#most.size === 0 && lastedMs > 0)) return;
    for (const [topic, now] of traffic) {
      const before = this.#before.get(topic) ?? NOTHING;
      const most = this.#most.get(topic) ?? {
        recordsPerSecond: 0,
        inBytesPerSecond: 0,
        outBytesPerSecond: 0,
      };
      const perSecond = (count: number): number => Math.max(0, (count * 1_000) / lastedMs);
      const inBytes = now.inBytes - before.inBytes;
      const outBytes = now.outBytes - before.outBytes - (this.#readOnceMore.has(topic) ? inBytes : 0);
      this.#most.set(topic, {
        recordsPerSecond: Math.max(most.recordsPerSecond, perSecond(now.records - before.records)),
        inBytesPerSecond: Math.max(most.inBytesPerSecond, perSecond(inBytes)),
        outBytesPerSecond: Math.max(most.outBytesPerSecond, perSecond(outBytes)),
      });
    }
    this.begin(traffic, nowMs);
  }

  /** By topic, those that carried nothing left out. */
  busiest(): ReadonlyMap<string, Rates> {
    return new Map([...this.#most].filter(([, { recordsPerSecond }]) => recordsPerSecond > 0));
  }
}

const NOTHING: TopicTraffic = { records: 0, inBytes: 0, outBytes: 0 };

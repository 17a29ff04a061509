import type { Connection } from '../client/connection.ts';
import { schemaOf } from '../contracts/headers.ts';
import type { ScoredResult } from '../contracts/records.ts';
import { identityKey } from '../core/outcome/identity.ts';
import { createLedger, type LedgerSummary } from '../core/outcome/ledger.ts';
import { outcomeKind } from '../core/outcome/outcome.ts';
import type { InboundRecord, Reader } from '../ports/message-bus.ts';

/**
 * The books of the invariant, kept by a reader that is no part of the pipeline: it reads the ingress topics and scored-results
 * as any client could, and nothing else.
 */
export interface OutsideLedger {
  summary(): LedgerSummary;
  /**
   * Resolves true when at least `ingressMin` requests have been seen on ingress and none is in flight, false when that was not so in time, or
   * when `signal` was aborted. The ledger reads as others do: what was sent last, it may not have seen yet, so whoever waits says how many
   * were sent.
   */
  drained(timeoutMs: number, ingressMin: number, signal?: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

export interface OutsideLedgerOptions {
  ingress?: readonly string[];
  onResult?(result: ScoredResult): void;
}

const CHECK_MS = 50;
const LEARN_RETRY_MS = 500;

/** Counts whatever reaches ingress from now on. */
export async function openOutsideLedger(
  connection: Connection,
  options: OutsideLedgerOptions = {},
): Promise<OutsideLedger> {
  const { bus, topics, clock } = connection;
  const ledger = createLedger();
  const appendedMs = new Map<string, number>();
  const onResult = (record: InboundRecord): void => {
    const decoded = connection.codecs.for('ScoredResult').decode(record.value, schemaOf(record.headers));
    if (decoded.status === 'schema-unknown') {
      connection.codecs.learn(decoded).then(
        () => onResult(record),
        () => clock.after(LEARN_RETRY_MS, () => onResult(record)),
      );
      return;
    }
    if (decoded.status === 'unreadable') {
      ledger.unreadable(record.partition, record.offset);
      const { partition, offset } = record;
      const { code, message } = decoded;
      connection.telemetry.logger.warn(
        { partition, offset, code, reason: message },
        'a result cannot be read',
      );
      return;
    }
    const result = decoded.value;
    const outcome = outcomeKind(result.outcome);
    if (outcome === undefined) return;
    const key = identityKey(result.identity);
    const sentMs = appendedMs.get(key);
    appendedMs.delete(key);
    ledger.result({
      identityKey: key,
      partition: record.partition,
      offset: record.offset,
      outcome,
      latencyMs: sentMs === undefined ? result.timings.totalMs : Math.max(0, record.timestampMs - sentMs),
    });
    options.onResult?.(result);
  };
  const onIngress = (record: InboundRecord): void => {
    const key = identityKey(record);
    ledger.ingress(key);
    appendedMs.set(key, record.timestampMs);
  };
  const readers: Reader[] = await Promise.all([
    bus.read(
      { topics: options.ingress ?? [topics.ingress()], startAt: 'latest', unreadable: 'delivered' },
      (records) => records.forEach(onIngress),
    ),
    bus.read({ topics: [topics.fixed('scored-results')], startAt: 'latest' }, (records) =>
      records.forEach(onResult),
    ),
  ]);
  return {
    summary: () => ledger.summary(),
    async drained(timeoutMs, ingressMin, signal) {
      const isDrained = (): boolean => {
        const { ingress, inFlight } = ledger.summary();
        return ingress >= ingressMin && inFlight === 0;
      };
      const untilMs = clock.monotonicMs() + timeoutMs;
      while (clock.monotonicMs() < untilMs && signal?.aborted !== true) {
        if (isDrained()) return true;
        await new Promise<void>((resolve) => clock.after(CHECK_MS, resolve));
      }
      return isDrained();
    },
    async close() {
      await Promise.all(readers.map((reader) => reader.close()));
    },
  };
}

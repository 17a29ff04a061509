import type { Connection } from '../../src/client/connection.ts';
import { schemaOf } from '../../src/contracts/headers.ts';
import type { ScoredResult } from '../../src/contracts/records.ts';
import { identityKey } from '../../src/core/outcome/identity.ts';
import { createLedger, type LedgerSummary } from '../../src/core/outcome/ledger.ts';
import { outcomeKind } from '../../src/core/outcome/outcome.ts';
import type { InboundRecord } from '../../src/ports/message-bus.ts';

/** The books of a pipeline after a run, from its first record to its last, read as any client could. */
export async function readBooks(connection: Connection): Promise<LedgerSummary> {
  const { topics } = connection;
  const ledger = createLedger();
  await readAll(connection, topics.ingress(), (record) => ledger.ingress(identityKey(record)));
  const results: InboundRecord[] = [];
  await readAll(connection, topics.fixed('scored-results'), (record) => results.push(record));
  for (const record of results) {
    const { identity, outcome, timings } = await decode(connection, record);
    const kind = outcomeKind(outcome);
    if (kind === undefined) throw new Error(`a result has no known outcome: ${outcome}`);
    const { partition, offset } = record;
    ledger.result({
      identityKey: identityKey(identity),
      partition,
      offset,
      outcome: kind,
      latencyMs: timings.totalMs,
    });
  }
  return ledger.summary();
}

async function decode({ codecs }: Connection, { value, headers }: InboundRecord): Promise<ScoredResult> {
  const decoded = codecs.for('ScoredResult').decode(value, schemaOf(headers));
  if (decoded.status === 'ok') return decoded.value;
  if (decoded.status === 'unreadable') throw new Error(`a result cannot be read: ${decoded.message}`);
  await codecs.learn(decoded);
  const again = codecs.for('ScoredResult').decode(value, schemaOf(headers));
  if (again.status !== 'ok') throw new Error(`a result cannot be read: ${again.status}`);
  return again.value;
}

/** The same of a relay, whose records carry no identity: how many went in, and how many different ones came out. */
export async function countRelayed(connection: Connection): Promise<{ ingress: number; results: number }> {
  const { topics } = connection;
  const keys = new Set<string>();
  let ingress = 0;
  await readAll(connection, topics.ingress(), () => {
    ingress += 1;
  });
  await readAll(connection, topics.fixed('scored-results'), ({ key }) =>
    keys.add(key?.toString('latin1') ?? ''),
  );
  return { ingress, results: keys.size };
}

async function readAll(
  { bus }: Connection,
  topic: string,
  onRecord: (record: InboundRecord) => void,
): Promise<void> {
  const reader = await bus.read({ topics: [topic], startAt: 'earliest' }, (records) =>
    records.forEach(onRecord),
  );
  await reader.caughtUp;
  await reader.close();
}

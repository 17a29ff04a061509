import { expect } from 'vitest';
import type { Connection } from '../../src/client/connection.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { generatedArrivals } from '../../src/traffic/arrivals.ts';
import { readCatalogue } from '../../src/traffic/catalogue.ts';
import { type Driven, drive } from '../../src/traffic/drive.ts';
import { type OutsideLedger, openOutsideLedger } from '../../src/traffic/outside-ledger.ts';
import { createRequestMaker } from '../../src/traffic/request-maker.ts';
import { openSender } from '../../src/traffic/send-requests.ts';
import { eventually } from './real-pipeline.ts';

export const RATE_PER_SECOND = 60;
const catalogue = readCatalogue('models/catalogue');
let runs = 0;

/** Traffic in the background, and the books of it. */
export interface Load {
  ledger: OutsideLedger;
  /** Ends the traffic, drains, and answers what became of it. */
  end(): Promise<ReturnType<OutsideLedger['summary']> & Pick<Driven, 'sent' | 'refused'>>;
}

export async function startLoad(
  client: Connection,
  deadlineMs = 60_000,
  ratePerSecond = RATE_PER_SECOND,
): Promise<Load> {
  runs += 1;
  const random = seededRandom(runs);
  const ledger = await openOutsideLedger(client);
  const stop = new AbortController();
  const driving: Promise<Driven> = drive({
    arrivals: generatedArrivals(
      { ratePerSecond, candidatesMax: 32, historyRowsMax: 8 },
      random.stream('arrivals'),
    ),
    maker: createRequestMaker(catalogue, random.stream('requests'), { deadlineMs }),
    clock: client.clock,
    idPrefix: `run${runs}-`,
    send: await openSender(client),
    requestsMax: Number.POSITIVE_INFINITY,
    durationMs: Number.POSITIVE_INFINITY,
    signal: stop.signal,
  });
  const finish = async (): Promise<Awaited<ReturnType<Load['end']>>> => {
    stop.abort();
    const { sent, refused } = await driving;
    await ledger.drained(120_000, sent - refused);
    const summary = ledger.summary();
    await ledger.close();
    return { ...summary, sent, refused };
  };
  let finished: ReturnType<typeof finish> | undefined;
  return {
    ledger,
    end() {
      finished ??= finish();
      return finished;
    },
  };
}

/** Counts results until so many more have come: the pipeline works. */
export async function moreResults(ledger: OutsideLedger, more: number): Promise<void> {
  const answered = (): number => ledger.summary().ingress - ledger.summary().inFlight;
  const before = answered();
  await eventually(() => answered() >= before + more, `${more} more results`, 120_000);
}

export function expectAllScored(summary: Awaited<ReturnType<Load['end']>>): void {
  expect(summary).toMatchObject({
    inFlight: 0,
    duplicatesVisible: 0,
    unknown: 0,
    balanced: true,
    refused: 0,
  });
  expect(summary.outcomes.scored).toBe(summary.ingress);
  expect(summary.sent).toBeGreaterThan(0);
  expect(summary.ingress).toBeGreaterThanOrEqual(summary.sent);
}

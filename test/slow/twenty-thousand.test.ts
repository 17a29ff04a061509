import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import type { Stack } from '../../src/local-stack/stack.ts';
import { startStack } from '../../src/local-stack/start-stack.ts';
import { readCatalogue } from '../../src/traffic/catalogue.ts';
import { drive } from '../../src/traffic/drive.ts';
import { openOutsideLedger } from '../../src/traffic/outside-ledger.ts';
import { createRequestMaker } from '../../src/traffic/request-maker.ts';
import { openSender } from '../../src/traffic/send-requests.ts';
import { parseTraceInferenceCsv, traceArrivals } from '../../src/traffic/trace-inference-csv.ts';
import { eventually, type RealPipeline, startRealPipeline } from './real-pipeline.ts';

const REQUESTS = 20_000;
const RATE_PER_SECOND = 500;
const IN_FLIGHT_AT_KILL = 50;

let stack: Stack;
let pipeline: RealPipeline;

beforeAll(async () => {
  stack = await startStack();
  pipeline = await startRealPipeline(stack.environment);
});

afterAll(async () => {
  await pipeline?.close();
  await stack?.stop();
});

it('20 000 requests of a bursty trace, a router and a worker killed with -9 under load, the broker restarted: each has one visible outcome', async () => {
  const { client } = pipeline;
  const random = seededRandom(1);
  const rows = parseTraceInferenceCsv(readFileSync('examples/traces/azure-llm-inference-code.csv', 'utf8'));
  const ledger = await openOutsideLedger(client);
  const driving = drive({
    arrivals: traceArrivals(rows, RATE_PER_SECOND, {
      tokensPerCandidate: 128,
      candidatesMax: 64,
      historyRowsMax: 8,
    }),
    maker: createRequestMaker(readCatalogue('models/catalogue'), random.stream('requests'), {
      deadlineMs: 60_000,
    }),
    clock: client.clock,
    idPrefix: 'trace-',
    send: await openSender(client),
    requestsMax: REQUESTS,
    durationMs: Number.POSITIVE_INFINITY,
  });
  const killUnderLoad = async (name: string, after: number): Promise<number> => {
    await eventually(
      () => ledger.summary().ingress >= after && ledger.summary().inFlight >= IN_FLIGHT_AT_KILL,
      `${IN_FLIGHT_AT_KILL} requests in flight after ${after}`,
      300_000,
    );
    const { inFlight } = ledger.summary();
    await pipeline.kill(name);
    await pipeline.start(name);
    return inFlight;
  };
  const atKill = {
    router: await killUnderLoad('router', REQUESTS * 0.1),
    worker: await killUnderLoad('worker-1', REQUESTS * 0.3),
  };
  await eventually(
    () => ledger.summary().ingress >= REQUESTS * 0.6,
    '60 % of the requests on ingress',
    300_000,
  );
  await stack.restartBroker(0);
  const driven = await driving;
  const drained = await ledger.drained(180_000, REQUESTS);
  const summary = ledger.summary();
  console.log(JSON.stringify({ ...summary, atKill, behindMsMax: Math.round(driven.behindMsMax) }));
  expect(atKill.router).toBeGreaterThanOrEqual(IN_FLIGHT_AT_KILL);
  expect(atKill.worker).toBeGreaterThanOrEqual(IN_FLIGHT_AT_KILL);
  expect(driven).toMatchObject({ sent: REQUESTS, refused: 0 });
  expect(drained).toBe(true);
  expect(summary).toMatchObject({
    inFlight: 0,
    duplicatesVisible: 0,
    unknown: 0,
    balanced: true,
  });
  // A producer that never heard of its first append may append twice: two identities, both answered.
  expect(summary.ingress).toBeGreaterThanOrEqual(REQUESTS);
  expect(summary.outcomes.rejected).toBe(0);
  expect(summary.outcomes.deadLettered).toBe(0);
  await ledger.close();
});

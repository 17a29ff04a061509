import { parseArgs } from 'node:util';
import { seededRandom } from '../src/core/random/seeded-random.ts';
import { runWaitingLine, type WaitingLineRun } from '../src/simulation/engine/waiting-line.ts';
import { median } from './pipeline/statistics.ts';
import type { BenchRow } from './run.ts';
import { pythonWithSimPy, runSimPy } from './simulation-engine/simpy.ts';

const SERVERS = 4;
const LOAD = 0.8;
const ROUNDS = 5;

/**
 * How many events the simulation's engine takes a second on M/M/4 at 80 % load, and SimPy on the same model in turns with it. An event is an
 * arrival or a completion, for both; SimPy schedules more for them, and is shown by that count too.
 *
 *   npm run bench -- simulation-engine --customers 2000000 --seed 1
 */
export async function run(options: readonly string[]): Promise<{ rows: BenchRow[] }> {
  const { values } = parseArgs({
    args: [...options],
    options: {
      customers: { type: 'string', default: '2000000' },
      seed: { type: 'string', default: '1' },
    },
  });
  const [customers, seed] = [Number(values.customers), Number(values.seed)];
  const python = await pythonWithSimPy();
  const own: number[] = [];
  const peers: { events: number; ownEvents: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    own.push(eventsPerS(() => runMillrace(customers, seed + round)));
    const peer = await runSimPy(python, SERVERS, Math.ceil(customers / 20), seed + round, LOAD);
    peers.push({ events: peer.events / peer.seconds, ownEvents: peer.ownEvents / peer.seconds });
  }
  const events = median(own);
  const peerEvents = median(peers.map((peer) => peer.events));
  const peerOwnEvents = median(peers.map((peer) => peer.ownEvents));
  const row = (metric: string, value: number, unit: string): BenchRow => ({ metric, value, unit });
  return {
    rows: [
      { ...row('M/M/4: arrivals and completions', events / 1e6, 'M/s'), target: 2, relation: '>=' },
      { ...row('M/M/4: arrivals and completions', peerEvents / 1e6, 'M/s'), peer: 'SimPy' },
      { ...row('M/M/4: all that it schedules', peerOwnEvents / 1e6, 'M/s'), peer: 'SimPy' },
      row("against SimPy's arrivals and completions", events / peerEvents, '×'),
      { ...row('against all that SimPy schedules', events / peerOwnEvents, '×'), target: 5, relation: '>=' },
    ],
  };
}

function runMillrace(customers: number, seed: number): WaitingLineRun {
  const between = { kind: 'exponential', mean: 1 / (SERVERS * LOAD) } as const;
  const line = { servers: SERVERS, between, service: { kind: 'exponential', mean: 1 } } as const;
  return runWaitingLine(line, seededRandom(seed).stream, customers);
}

function eventsPerS(work: () => WaitingLineRun): number {
  const startedMs = performance.now();
  const { events } = work();
  return (events * 1_000) / (performance.now() - startedMs);
}

import type { ScoreRequest } from '../../src/contracts/records.ts';
import { partitionForKey } from '../../src/core/request/partition.ts';
import { readCatalogue } from '../../src/traffic/catalogue.ts';
import { createRequestMaker } from '../../src/traffic/request-maker.ts';
import { openSender } from '../../src/traffic/send-requests.ts';
import { PARTITIONS } from './fleet.ts';
import type { Installation } from './installation.ts';

const catalogue = readCatalogue('models/catalogue');

export interface TrafficOptions {
  requests: number;
  /** They come at random moments of this span. */
  spreadMs: number;
  /** Each request draws one of these. */
  deadlinesMs: readonly number[];
  change?(request: ScoreRequest, n: number): ScoreRequest;
}

/** What a request asks for. */
export interface Asked {
  readonly candidates: number;
  readonly deadlineMs: number;
}

/** Sends that are scheduled, and how many of them the bus has stored. */
export interface Traffic {
  sent: number;
  stored: number;
  /** By id. */
  readonly asked: Map<string, Asked>;
}

/** Schedules requests from now on. What it draws depends on the seed and the options alone. */
export async function scheduleTraffic(installation: Installation, options: TrafficOptions): Promise<Traffic> {
  const { client } = installation;
  const random = installation.random.stream('traffic');
  const maker = createRequestMaker(catalogue, installation.random.stream('requests'));
  const send = await installation.settle(openSender(client));
  const traffic: Traffic = { sent: 0, stored: 0, asked: new Map() };
  for (let n = 0; n < options.requests; n += 1) {
    const shape = { candidates: 4 + random.below(16), historyRows: random.below(4) };
    const deadlineMs = options.deadlinesMs[random.below(options.deadlinesMs.length)] ?? 60_000;
    const made = { ...maker.make(`r${n}`, shape), deadlineMs };
    const request = options.change?.(made, n) ?? made;
    traffic.asked.set(request.requestId, { candidates: shape.candidates, deadlineMs });
    client.clock.after(random.next() * options.spreadMs, () => {
      traffic.sent += 1;
      void send(request).then(() => {
        traffic.stored += 1;
      });
    });
  }
  return traffic;
}

/** One request more, now. */
export function sendSoon(
  installation: Installation,
  traffic: Traffic,
  requestId: string,
  change: (request: ScoreRequest) => ScoreRequest,
): void {
  const maker = createRequestMaker(catalogue, installation.random.stream(`request ${requestId}`));
  const request = { ...maker.make(requestId, { candidates: 6, historyRows: 1 }), deadlineMs: 60_000 };
  traffic.sent += 1;
  void openSender(installation.client)
    .then((send) => send(change(request)))
    .then(() => {
      traffic.stored += 1;
    });
}

/** A record that nobody can read, at a random moment of the span. */
export function scheduleBytes(
  installation: Installation,
  traffic: Traffic,
  key: string,
  value: Buffer,
  spreadMs: number,
): void {
  const { client, random } = installation;
  const topic = client.topics.ingress();
  client.clock.after(random.stream(`bytes ${key}`).next() * spreadMs, () => {
    traffic.sent += 1;
    void client.bus
      .produce({
        topic,
        partition: partitionForKey(Buffer.from(key), PARTITIONS),
        key: Buffer.from(key),
        value,
      })
      .then(() => {
        traffic.stored += 1;
      });
  });
}

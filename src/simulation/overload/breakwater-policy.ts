import { Fifo } from '../../core/fifo.ts';
import { Breakwater } from '../baselines/breakwater.ts';
import type { CreatePolicy } from './pool-policy.ts';
import type { Attempt } from './pool-request.ts';

/** A round trip of the pipeline's hops; the paper's is 10 µs inside one rack. As in its code, a client gives up what found no credit for so long. */
const ROUND_TRIP_MS = 10;
const CLIENTS = 100;

/**
 * Breakwater before a pool: requests without a credit wait at their client, which soon gives them up; the server drops what queued for too long.
 * All clients are taken together, and always say what they wait with.
 */
export const breakwaterPolicy: CreatePolicy = ({ slaMs, onDrop }) => {
  const breakwater = new Breakwater(slaMs, CLIENTS);
  const atClients = new Fifo<Attempt>();
  const queue = new Fifo<{ attempt: Attempt; sinceMs: number }>();
  let inflight = 0;

  const send = (nowMs: number): void => {
    while (inflight < Math.floor(breakwater.credits)) {
      const attempt = atClients.shift();
      if (attempt === undefined) return;
      if (nowMs - attempt.arrivedMs > ROUND_TRIP_MS) {
        onDrop(attempt);
        continue;
      }
      inflight += 1;
      queue.push({ attempt, sinceMs: nowMs });
    }
  };

  return {
    tickMs: ROUND_TRIP_MS,
    arrive: (attempt, nowMs) => {
      atClients.push(attempt);
      send(nowMs);
      return true;
    },
    next: (nowMs) => {
      for (let head = queue.shift(); head !== undefined; head = queue.shift()) {
        if (nowMs - head.sinceMs <= breakwater.dropAboveMs)
          return { work: head.attempt, extras: head.attempt.extras.length };
        inflight -= 1;
        onDrop(head.attempt);
      }
      return undefined;
    },
    complete: (_, nowMs) => {
      inflight -= 1;
      send(nowMs);
    },
    tick: (nowMs) => {
      breakwater.update(nowMs - (queue.at(0)?.sinceMs ?? nowMs));
      send(nowMs);
    },
    limit: () => breakwater.credits,
  };
};

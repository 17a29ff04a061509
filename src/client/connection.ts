import type { Codecs } from '../contracts/codec.ts';
import type { TopicNames } from '../contracts/topics.ts';
import type { Clock } from '../ports/clock.ts';
import type { MessageBus } from '../ports/message-bus.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** What a client needs to talk to millrace, however it gets there. */
export interface Connection {
  bus: MessageBus;
  /** Ready to encode requests, commands and outcomes, and to decode results. */
  codecs: Codecs;
  topics: TopicNames;
  clock: Clock;
  telemetry: Telemetry;
  /** A fresh random text, for request and command ids. */
  newId(): string;
  /** Closes what this connection opened. */
  close(): Promise<void>;
}

/** A way to millrace: Kafka, or the in-process bus of the embedded run. The calls of the client are the same on both. */
export interface Transport {
  /** Whoever listens is told what holds it up; else the log is. */
  open(listener?: OpeningListener): Promise<Connection>;
}

export interface OpeningListener {
  /** What is waited for from now on, in words: it may be called often, and with the same. */
  waitsFor(what: string): void;
}

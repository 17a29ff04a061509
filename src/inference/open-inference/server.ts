import type { Clock } from '../../ports/clock.ts';
import type { GraphAnswer, GraphCall, GraphSignature } from '../graph-call.ts';
import { reasonOf, Unavailable } from './failures.ts';
import { GrpcClient } from './grpc-client.ts';
import { HttpClient } from './http-client.ts';
import type { Attempt, ProtocolClient, ServedModel } from './protocol-client.ts';
import type { TensorForm } from './tensors.ts';

export interface ServerOptions {
  protocol: 'http' | 'grpc';
  /** `http(s)://host:port`; over HTTP with a path before `/v2` where there is one. */
  url: string;
  /** The protocol's .proto, as this package has it. */
  protoFile: string;
  /** How long a question about a model may take, and an inference whose caller names no deadline. */
  timeoutMs: number;
}

const RETRY_MS = 50;

/** A server of the Open Inference Protocol (V2): Triton, KServe, OpenVINO Model Server, MLServer, … */
export class OpenInferenceServer {
  readonly #options: ServerOptions;
  readonly #client: ProtocolClient;
  readonly #clock: Clock;
  readonly #closed = new AbortController();

  constructor(options: ServerOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#client =
      options.protocol === 'grpc'
        ? new GrpcClient(options, () => clock.wallMs())
        : new HttpClient(options.url);
  }

  /**
   * Waits until the server says that its models are loaded, or until the time is over: one that goes on saying that they are not may have others
   * than ours in mind. @throws Error with the reason where nobody answered
   */
  async ready(): Promise<void> {
    let wasAnswered = false;
    try {
      await this.#ask(async (attempt) => {
        try {
          await this.#client.ready(attempt);
        } catch (error) {
          if (!(error instanceof Unavailable)) return;
          wasAnswered ||= error.wasAnswered;
          throw error;
        }
      });
    } catch (error) {
      if (!wasAnswered) throw error;
    }
  }

  /** What the server says that a model takes and gives; undefined where it does not say. @throws Error with the reason */
  signature(model: ServedModel): Promise<GraphSignature | undefined> {
    return this.#ask((attempt) => this.#client.signature(model, attempt));
  }

  /** The most requests that the server puts together by itself, 0 where it does not; Triton alone says that. */
  async batchSizeMax(model: ServedModel): Promise<number> {
    try {
      return await this.#ask((attempt) => this.#client.batchSizeMax(model, attempt));
    } catch {
      return 0;
    }
  }

  async infer(model: ServedModel, form: TensorForm, call: GraphCall): Promise<GraphAnswer> {
    const { slab } = call;
    // Some servers take no tensor without elements, and there is nothing to compute.
    if (call.outputs.every(({ dims }) => dims.includes(0))) return { kind: 'ran', slab, computeMs: 0 };
    const startedMs = this.#clock.monotonicMs();
    try {
      await this.#ask((attempt) => this.#client.infer(model, form, call, attempt), call.deadlineMs);
      return { kind: 'ran', slab, computeMs: this.#clock.monotonicMs() - startedMs };
    } catch (error) {
      const message = `${this.#options.url}: ${reasonOf(error)}`;
      if (error instanceof Unavailable) return { kind: 'unavailable', message, slab };
      return { kind: 'failed', message, slab, computeMs: this.#clock.monotonicMs() - startedMs };
    }
  }

  /** Ends what is under way. */
  close(): void {
    this.#closed.abort(new Error('the accelerator is closed'));
    this.#client.close();
  }

  /** Tries again what finds the server unavailable, as long as there is time: to infer twice is to infer once. */
  async #ask<T>(
    question: (attempt: Attempt) => Promise<T>,
    deadlineMs = this.#clock.monotonicMs() + this.#options.timeoutMs,
  ): Promise<T> {
    let failure = new Unavailable('no time was left to ask it');
    for (;;) {
      const leftMs = deadlineMs - this.#clock.monotonicMs();
      if (!(leftMs > 0)) throw failure;
      const timeOut = new AbortController();
      const cancel = this.#clock.after(leftMs, () => timeOut.abort(new Error('it did not answer in time')));
      try {
        const signal = AbortSignal.any([timeOut.signal, this.#closed.signal]);
        return await question({ signal, leftMs });
      } catch (error) {
        const isOver = deadlineMs - this.#clock.monotonicMs() <= RETRY_MS || this.#closed.signal.aborted;
        if (!(error instanceof Unavailable) || isOver) throw error;
        failure = error;
      } finally {
        cancel();
      }
      await new Promise<void>((resolve) => this.#clock.after(RETRY_MS, resolve));
    }
  }
}

import { z } from 'zod';
import type { Clock } from '../../ports/clock.ts';
import type { GraphAnswer, GraphCall, GraphSignature, GraphValue } from '../graph-call.ts';
import { AnswerError, decodeInfer, encodeInfer, JSON_LENGTH_HEADER, type TensorForm } from './message.ts';

/** A model as a server names it. */
export interface ServedModel {
  name: string;
  /** The server's choice where undefined. */
  version: string | undefined;
}

export interface ServerOptions {
  /** `http(s)://host:port`, with a path before `/v2` where there is one. */
  url: string;
  /** How long a question about a model may take, and an inference whose caller names no deadline. */
  timeoutMs: number;
}

/** A JSON of metadata is never so long, nor is what an answer says beside its numbers. */
const HEAD_BYTES_MAX = 1024 * 1024;
/** The longest a float32 is in JSON, with its comma: -1.1754943508222875e-38 */
const NUMBER_BYTES_MAX = 32;
const RETRY_MS = 50;
/** Answers of a server, or of a proxy before it, that has nothing to compute on just now. */
const UNAVAILABLE_STATUS: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Of Triton while a model is loading; of others it is 503. */
const NOT_READY_STATUS = 400;

/** Of a server that had the model when the version was loaded: it was started again, and has not loaded it yet. */
const NO_MODEL_STATUS = 404;

/** It could not be reached, or cannot compute just now: to be asked again. */
class Unavailable extends Error {
  /** Of HTTP, where it was reached. */
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}

function statusOf(error: unknown): number | undefined {
  return error instanceof AnswerError || error instanceof Unavailable ? error.status : undefined;
}

const describedTensors = z
  .array(z.object({ name: z.string(), datatype: z.string(), shape: z.array(z.int()) }))
  .nullish();

const metadataSchema = z.object({ inputs: describedTensors, outputs: describedTensors });

const configSchema = z.object({ max_batch_size: z.int().default(0) });

/** A server of the Open Inference Protocol (V2) over HTTP: Triton, KServe, OpenVINO Model Server, MLServer, … */
export class OpenInferenceServer {
  readonly #options: ServerOptions;
  readonly #clock: Clock;
  readonly #closed = new AbortController();
  #asked = 0;

  constructor(options: ServerOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /**
   * Waits until the server says that its models are loaded, or until the time is over: one that goes on saying that they are not may have others
   * than ours in mind, and one that says nothing is taken to be ready. @throws Error with the reason where nobody answered
   */
  async ready(): Promise<void> {
    let wasAnswered = false;
    const ask = async (signal: AbortSignal): Promise<void> => {
      try {
        await this.#get('/v2/health/ready', signal);
      } catch (error) {
        wasAnswered ||= statusOf(error) !== undefined;
        if (statusOf(error) === NOT_READY_STATUS) throw new Unavailable(reasonOf(error));
        if (error instanceof Unavailable) throw error;
      }
    };
    try {
      await this.#untilDeadline(this.#deadline(), ask);
    } catch (error) {
      if (!wasAnswered) throw error;
    }
  }

  /** What the server says that a model takes and gives; undefined where it does not say. @throws Error with the reason */
  async signature(model: ServedModel): Promise<GraphSignature | undefined> {
    const answer = await this.#untilDeadline(this.#deadline(), (signal) => this.#get(pathOf(model), signal));
    const { inputs, outputs } = metadataSchema.safeParse(jsonOf(answer)).data ?? {};
    if (!inputs?.length) return undefined;
    return { inputs: inputs.map(graphValue), outputs: (outputs ?? []).map(graphValue) };
  }

  /** The most requests that the server puts together by itself, 0 where it does not; Triton alone says that. */
  async batchSizeMax(model: ServedModel): Promise<number> {
    try {
      const answer = await this.#untilDeadline(this.#deadline(), (signal) =>
        this.#get(`${pathOf(model)}/config`, signal),
      );
      return configSchema.parse(jsonOf(answer)).max_batch_size;
    } catch {
      return 0;
    }
  }

  async infer(model: ServedModel, form: TensorForm, call: GraphCall): Promise<GraphAnswer> {
    const deadlineMs = call.deadlineMs ?? this.#deadline();
    const { slab } = call;
    // Some servers take no tensor without elements, and there is nothing to compute.
    if (call.outputs.every(({ dims }) => dims.includes(0))) return { kind: 'ran', slab, computeMs: 0 };
    const startedMs = this.#clock.monotonicMs();
    try {
      await this.#untilDeadline(deadlineMs, (signal, leftMs) =>
        this.#inferOnce(model, form, call, signal, leftMs),
      );
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
  }

  #deadline(): number {
    return this.#clock.monotonicMs() + this.#options.timeoutMs;
  }

  async #inferOnce(
    model: ServedModel,
    form: TensorForm,
    call: GraphCall,
    signal: AbortSignal,
    leftMs: number,
  ): Promise<void> {
    this.#asked += 1;
    const timeoutUs = Math.max(1, Math.round(leftMs * 1_000));
    const { headers, body } = encodeInfer(call, form, String(this.#asked), timeoutUs);
    const outputs = call.outputs.reduce((sum, { dims }) => sum + (dims[0] ?? 0), 0);
    const answer = await this.#fetch(
      `${pathOf(model)}/infer`,
      { method: 'POST', headers, body, signal },
      HEAD_BYTES_MAX + outputs * NUMBER_BYTES_MAX,
    ).catch((error: unknown) => {
      throw statusOf(error) === NO_MODEL_STATUS ? new Unavailable(reasonOf(error)) : error;
    });
    const length = answer.headers.get(JSON_LENGTH_HEADER);
    decodeInfer(answer.body, length === null ? undefined : Number(length), call);
  }

  /** Tries again what finds the server unavailable, as long as there is time: to infer twice is to infer once. */
  async #untilDeadline<T>(
    deadlineMs: number,
    attempt: (signal: AbortSignal, leftMs: number) => Promise<T>,
  ): Promise<T> {
    for (;;) {
      const leftMs = deadlineMs - this.#clock.monotonicMs();
      if (!(leftMs > 0)) throw new Unavailable('no time was left to ask it');
      const timeOut = new AbortController();
      const cancel = this.#clock.after(leftMs, () => timeOut.abort(new Error('it did not answer in time')));
      try {
        return await attempt(AbortSignal.any([timeOut.signal, this.#closed.signal]), leftMs);
      } catch (error) {
        const isOver = deadlineMs - this.#clock.monotonicMs() <= RETRY_MS || this.#closed.signal.aborted;
        if (!(error instanceof Unavailable) || isOver) throw error;
      } finally {
        cancel();
      }
      await new Promise<void>((resolve) => this.#clock.after(RETRY_MS, resolve));
    }
  }

  #get(path: string, signal: AbortSignal): Promise<Answer> {
    return this.#fetch(path, { signal }, HEAD_BYTES_MAX);
  }

  async #fetch(path: string, request: RequestInit, bytesMax: number): Promise<Answer> {
    let response: Response;
    let body: Buffer;
    try {
      response = await fetch(`${this.#options.url}${path}`, { ...request, redirect: 'error' });
      body = await readAtMost(response, bytesMax);
    } catch (error) {
      if (error instanceof AnswerError) throw error;
      throw new Unavailable(reasonOf(error));
    }
    if (response.ok) return { headers: response.headers, body };
    const message = `HTTP ${response.status}: ${excerpt(errorOf(body))}`;
    throw UNAVAILABLE_STATUS.has(response.status)
      ? new Unavailable(message, response.status)
      : new AnswerError(message, response.status);
  }
}

interface Answer {
  headers: Headers;
  body: Buffer;
}

function pathOf({ name, version }: ServedModel): string {
  const ofVersion = version === undefined ? '' : `/versions/${encodeURIComponent(version)}`;
  return `/v2/models/${encodeURIComponent(name)}${ofVersion}`;
}

async function readAtMost(response: Response, bytesMax: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new AnswerError(`the answer has more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function jsonOf({ body }: Answer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** What the protocol calls `error`, or the beginning of whatever came. */
function errorOf(body: Buffer): string {
  const text = body.toString('utf8');
  try {
    const parsed = z.object({ error: z.string() }).safeParse(JSON.parse(text));
    return parsed.success ? parsed.data.error : text;
  } catch {
    return text;
  }
}

const EXCERPT_ENDS = 150;

/** A server written in Python answers with a traceback, whose last line has the reason. */
function excerpt(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, ' ');
  if (line.length <= 2 * EXCERPT_ENDS) return line;
  return `${line.slice(0, EXCERPT_ENDS)} … ${line.slice(-EXCERPT_ENDS)}`;
}

const ELEMENT_TYPE: Readonly<Record<string, string>> = { FP32: 'float32', INT64: 'int64' };

function graphValue({
  name,
  datatype,
  shape,
}: {
  name: string;
  datatype: string;
  shape: number[];
}): GraphValue {
  return {
    name,
    type: ELEMENT_TYPE[datatype] ?? datatype,
    shape: shape.map((size) => (size === -1 ? 'any' : size)),
  };
}

/** fetch puts the reason into the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

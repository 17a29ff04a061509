import * as v from 'valibot';
import { checked, mapping, whole } from '../../core/json-values.ts';
import type { GraphCall, GraphSignature } from '../graph-call.ts';
import { AnswerError, excerpt, reasonOf, Unavailable } from './failures.ts';
import { decodeInfer, encodeInfer, JSON_LENGTH_HEADER } from './http-message.ts';
import {
  type Attempt,
  answerBytesMax,
  graphSignature,
  HEAD_BYTES_MAX,
  type ProtocolClient,
  type ServedModel,
  timeoutUs,
} from './protocol-client.ts';
import type { TensorForm } from './tensors.ts';

/** The longest a float32 is in JSON, with its comma: -1.1754943508222875e-38 */
const NUMBER_BYTES_MAX = 32;
/** Answers of a server, or of a proxy before it, that has nothing to compute on just now. */
const UNAVAILABLE_STATUS: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Of Triton while a model is loading; of others it is 503. */
const NOT_READY_STATUS = 400;

/** Of a server that had the model when the version was loaded: it was started again, and has not loaded it yet. */
const NO_MODEL_STATUS = 404;

class StatusError extends AnswerError {
  /** Of HTTP. */
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

const describedTensors = v.nullish(
  v.array(v.object({ name: v.string(), datatype: v.string(), shape: v.array(whole) })),
);

const metadataSchema = v.object({ inputs: describedTensors, outputs: describedTensors });

const configSchema = v.pipe(mapping, v.object({ max_batch_size: v.optional(whole, 0) }));

/** The protocol over HTTP. */
export class HttpClient implements ProtocolClient {
  readonly #url: string;
  #asked = 0;

  /** @param url `http(s)://host:port`, with a path before `/v2` where there is one */
  constructor(url: string) {
    this.#url = url;
  }

  async ready({ signal }: Attempt): Promise<void> {
    await this.#get('/v2/health/ready', signal).catch(asUnavailable(NOT_READY_STATUS));
  }

  async signature(model: ServedModel, { signal }: Attempt): Promise<GraphSignature | undefined> {
    const answer = await this.#get(pathOf(model), signal);
    const described = v.safeParse(metadataSchema, jsonOf(answer));
    const { inputs, outputs } = described.success ? described.output : {};
    return graphSignature(inputs ?? [], outputs ?? []);
  }

  async batchSizeMax(model: ServedModel, { signal }: Attempt): Promise<number> {
    const answer = await this.#get(`${pathOf(model)}/config`, signal);
    return checked('its config', configSchema, jsonOf(answer)).max_batch_size;
  }

  async infer(model: ServedModel, form: TensorForm, call: GraphCall, attempt: Attempt): Promise<void> {
    this.#asked += 1;
    const { headers, body } = encodeInfer(call, form, String(this.#asked), timeoutUs(attempt));
    const answer = await this.#fetch(
      `${pathOf(model)}/infer`,
      { method: 'POST', headers, body, signal: attempt.signal },
      answerBytesMax(call, NUMBER_BYTES_MAX),
    ).catch(asUnavailable(NO_MODEL_STATUS));
    const length = answer.headers.get(JSON_LENGTH_HEADER);
    decodeInfer(answer.body, length === null ? undefined : Number(length), call);
  }

  /** What is under way ends by its signal. */
  close(): void {}

  #get(path: string, signal: AbortSignal): Promise<Answer> {
    return this.#fetch(path, { signal }, HEAD_BYTES_MAX);
  }

  async #fetch(path: string, request: RequestInit, bytesMax: number): Promise<Answer> {
    let response: Response;
    let body: Buffer;
    try {
      response = await fetch(`${this.#url}${path}`, { ...request, redirect: 'error' });
      body = await readAtMost(response, bytesMax);
    } catch (error) {
      if (error instanceof AnswerError) throw error;
      throw new Unavailable(reasonOf(error));
    }
    if (response.ok) return { headers: response.headers, body };
    const message = `HTTP ${response.status}: ${excerpt(errorOf(body))}`;
    throw UNAVAILABLE_STATUS.has(response.status)
      ? new Unavailable(message, true)
      : new StatusError(message, response.status);
  }
}

interface Answer {
  headers: Headers;
  body: Buffer;
}

function asUnavailable(status: number): (error: unknown) => never {
  return (error) => {
    throw error instanceof StatusError && error.status === status
      ? new Unavailable(error.message, true)
      : error;
  };
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
    const parsed = v.safeParse(v.object({ error: v.string() }), JSON.parse(text));
    return parsed.success ? parsed.output.error : text;
  } catch {
    return text;
  }
}

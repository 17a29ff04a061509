import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { InferenceSession, Tensor } from 'onnxruntime-node';

/**
 * A server of the Open Inference Protocol written for the tests, from the protocol's text and not from our client: it computes with ONNX Runtime.
 * `json-only` answers binary tensors with HTTP 500, as a server without that extension does. Real servers are asked in test/interop.
 */
export interface ProtocolServer {
  readonly url: string;
  /** What arrived, newest last. */
  readonly seen: { path: string; binary: boolean; timeout: unknown }[];
  /** Answers so to the next requests for inference, before it computes again. */
  failNext(...answers: ((response: ServerResponse) => void)[]): void;
  close(): Promise<void>;
}

export interface ProtocolServerOptions {
  form?: 'binary' | 'json-only';
  /** Of every model; Triton alone tells. */
  batchSizeMax?: number;
  /** What the first questions for its health are answered with, before 200. */
  notReady?: readonly number[];
  /** So many questions about models come before it has loaded any. */
  loadsAfter?: number;
  /** To listen on; a free one where it is left out. */
  port?: number;
  /** Rows of one number instead of numbers, as some servers write JSON. */
  nested?: boolean;
}

export interface ServedGraph {
  name: string;
  version: string;
  graph: Uint8Array;
}

interface JsonTensor {
  name: string;
  shape: number[];
  datatype: string;
  data?: number[];
  parameters?: { binary_data_size?: number };
}

interface InferJson {
  inputs: JsonTensor[];
  outputs: { name: string; parameters?: { binary_data?: boolean } }[];
  parameters?: { timeout?: number };
}

export async function protocolServer(
  graphs: readonly ServedGraph[],
  options: ProtocolServerOptions = {},
): Promise<ProtocolServer> {
  const sessions = new Map<string, InferenceSession>();
  for (const { name, version, graph } of graphs) {
    sessions.set(
      `/v2/models/${name}/versions/${version}`,
      await InferenceSession.create(graph, { logSeverityLevel: 4 }),
    );
  }
  const notReady = [...(options.notReady ?? [])];
  let loadsAfter = options.loadsAfter ?? 0;
  const failures: ((response: ServerResponse) => void)[] = [];
  const seen: ProtocolServer['seen'] = [];
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => fail(response, 500, String(error)));
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    if (path === '/v2/health/ready') {
      const status = notReady.shift() ?? 200;
      return status === 200 ? send(response, {}) : fail(response, status, 'loading');
    }
    const [, model = '', rest] = /^(\/v2\/models\/[^/]+\/versions\/[^/]+)(\/\w+)?$/.exec(path) ?? [];
    const session = sessions.get(model);
    if (session === undefined || loadsAfter-- > 0) return fail(response, 404, `unknown model ${path}`);
    if (rest === '/config') {
      return options.batchSizeMax === undefined
        ? fail(response, 404, 'no such path')
        : send(response, { max_batch_size: options.batchSizeMax });
    }
    if (rest !== '/infer') return send(response, metadata(session, (options.batchSizeMax ?? 0) > 0));
    const failure = failures.shift();
    const body = await bytesOf(request);
    const { json, tensors, binary } = readInfer(request, body);
    seen.push({ path, binary, timeout: json.parameters?.timeout });
    if (failure !== undefined) return failure(response);
    if (binary && options.form === 'json-only') return fail(response, 500, 'expected JSON');
    const outputs = await session.run(tensors);
    sendOutputs(response, json, outputs, options.nested === true);
  }

  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    failNext: (...answers) => void failures.push(...answers),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await Promise.all([...sessions.values()].map((session) => session.release()));
    },
  };
}

export function fail(response: ServerResponse, status: number, error: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
}

export function send(response: ServerResponse, json: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(json));
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function readInfer(
  request: IncomingMessage,
  body: Buffer,
): { json: InferJson; tensors: Record<string, Tensor>; binary: boolean } {
  const length = request.headers['inference-header-content-length'];
  let at = length === undefined ? body.length : Number(length);
  const json: InferJson = JSON.parse(body.toString('utf8', 0, at));
  const tensors: Record<string, Tensor> = {};
  for (const { name, shape, datatype, data, parameters } of json.inputs) {
    const size = parameters?.binary_data_size;
    const bytes = size === undefined ? undefined : body.subarray(at, at + size);
    at += size ?? 0;
    tensors[name] = tensorOf(datatype, shape, bytes, data);
  }
  return { json, tensors, binary: length !== undefined };
}

function tensorOf(datatype: string, shape: number[], bytes?: Buffer, data: number[] = []): Tensor {
  const buffer = bytes === undefined ? undefined : new Uint8Array(bytes).buffer;
  return datatype === 'INT64'
    ? new Tensor('int64', buffer ? new BigInt64Array(buffer) : BigInt64Array.from(data, BigInt), shape)
    : new Tensor('float32', buffer ? new Float32Array(buffer) : Float32Array.from(data), shape);
}

/** As Triton does, with an axis more where the server makes batches. */
function metadata(session: InferenceSession, makesBatches: boolean): object {
  const list = (values: readonly InferenceSession.ValueMetadata[]): object[] =>
    values.map((value) =>
      value.isTensor
        ? {
            name: value.name,
            datatype: value.type === 'int64' ? 'INT64' : 'FP32',
            shape: [
              ...(makesBatches ? [-1] : []),
              ...value.shape.map((size) => (typeof size === 'number' ? size : -1)),
            ],
          }
        : {},
    );
  return { inputs: list(session.inputMetadata), outputs: list(session.outputMetadata) };
}

function sendOutputs(
  response: ServerResponse,
  { outputs: asked }: InferJson,
  outputs: InferenceSession.OnnxValueMapType,
  nested: boolean,
): void {
  const tails: Buffer[] = [];
  const list = asked.map(({ name, parameters }) => {
    const { data, dims } = outputs[name] as Tensor;
    const floats = data as Float32Array;
    const head = { name, datatype: 'FP32', shape: nested ? [...dims, 1] : dims };
    if (parameters?.binary_data !== true) {
      return { ...head, data: nested ? [...floats].map((value) => [value]) : [...floats] };
    }
    const bytes = Buffer.copyBytesFrom(floats);
    tails.push(bytes);
    return { ...head, parameters: { binary_data_size: bytes.length } };
  });
  const head = Buffer.from(JSON.stringify({ outputs: list }));
  const type =
    tails.length === 0
      ? { 'content-type': 'application/json' }
      : {
          'content-type': 'application/octet-stream',
          'inference-header-content-length': String(head.length),
        };
  response.writeHead(200, type).end(Buffer.concat([head, ...tails]));
}

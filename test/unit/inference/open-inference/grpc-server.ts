import { join } from 'node:path';
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { ServedGraph } from './http-server.ts';

/**
 * The protocol over gRPC, by a server written for the tests from the protocol's text and not from our client: it computes with ONNX Runtime.
 * `typed-only` refuses raw contents, as a server that does not know them does. Real servers are asked in test/interop.
 */
export interface GrpcServer {
  readonly port: number;
  readonly url: string;
  /** What arrived for inference, newest last; `leftMs` until the deadline of the call. */
  readonly seen: { model: string; version: string; raw: boolean; timeout: number; leftMs: number }[];
  /** How often it was asked whether it is ready. */
  readonly asked: number;
  /** Answers so to the next requests for inference, before it computes again. */
  failNext(...answers: Answering[]): void;
  close(): Promise<void>;
}

export type Answering = (respond: sendUnaryData<object>, outputs: () => Promise<InferAnswer>) => void;

export interface InferAnswer {
  outputs: { name: string; datatype: string; shape: number[]; contents?: { fp32_contents: number[] } }[];
  raw_output_contents: Buffer[];
}

export interface GrpcServerOptions {
  form?: 'raw' | 'typed-only';
  /** Of every model; Triton alone tells. */
  batchSizeMax?: number;
  /** What the first questions whether it is ready are answered with, before yes: a status, or no. */
  notReady?: readonly (number | 'no')[];
  /** PEM, where it is spoken to over TLS. */
  tls?: { key: string; cert: string };
  port?: number;
}

export const PROTO_FILE = join(import.meta.dirname, '../../../../schemas/open-inference.proto');

export const SERVICE = loadSync(PROTO_FILE, { keepCase: true, longs: String, arrays: true, defaults: true })[
  'inference.GRPCInferenceService'
] as ServiceDefinition;

interface TypedContents {
  fp32_contents: number[];
  int64_contents: string[];
}

interface InferRequest {
  model_name: string;
  model_version: string;
  parameters: Record<string, { int64_param: string }>;
  inputs: { name: string; datatype: string; shape: string[]; contents: TypedContents | null }[];
  outputs: { name: string }[];
  raw_input_contents: Buffer[];
}

interface ModelRequest {
  name: string;
  version: string;
}

export async function grpcServer(
  graphs: readonly ServedGraph[],
  options: GrpcServerOptions = {},
): Promise<GrpcServer> {
  const sessions = new Map<string, InferenceSession>();
  for (const { name, version, graph } of graphs)
    sessions.set(`${name}/${version}`, await InferenceSession.create(graph, { logSeverityLevel: 4 }));
  const sessionOf = (name: string, version: string): InferenceSession => {
    const session = sessions.get(`${name}/${version}`);
    if (session === undefined) throw failure(status.NOT_FOUND, `unknown model ${name}/${version}`);
    return session;
  };
  const notReady = [...(options.notReady ?? [])];
  const failures: Answering[] = [];
  const seen: GrpcServer['seen'] = [];
  let asked = 0;
  const server = new Server();
  server.addService(SERVICE, {
    ServerReady: unary(async () => {
      asked += 1;
      const answer = notReady.shift();
      if (typeof answer === 'number') throw failure(answer, 'loading');
      return { ready: answer === undefined };
    }),
    ModelMetadata: unary(async ({ name, version }: ModelRequest) =>
      metadata(name, sessionOf(name, version), (options.batchSizeMax ?? 0) > 0),
    ),
    ModelConfig: unary(async ({ name, version }: ModelRequest) => {
      sessionOf(name, version);
      if (options.batchSizeMax === undefined) throw failure(status.UNIMPLEMENTED, 'no such method');
      return { config: { max_batch_size: options.batchSizeMax } };
    }),
    ModelInfer(call: ServerUnaryCall<InferRequest, object>, respond: sendUnaryData<object>) {
      const { request } = call;
      const raw = request.raw_input_contents.length > 0;
      seen.push({
        model: request.model_name,
        version: request.model_version,
        raw,
        timeout: Number(request.parameters['timeout']?.int64_param),
        leftMs: Number(call.getDeadline()) - Date.now(),
      });
      const infer = async (): Promise<InferAnswer> => {
        if (raw && options.form === 'typed-only')
          throw failure(status.INVALID_ARGUMENT, 'raw_input_contents are not taken');
        const session = sessionOf(request.model_name, request.model_version);
        return answerOf(await session.run(tensorsOf(request)), request, raw);
      };
      const answering = failures.shift() ?? ((respond, outputs) => answer(outputs(), respond));
      answering(respond, infer);
    },
  });
  const credentials =
    options.tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(null, [
          { private_key: Buffer.from(options.tls.key), cert_chain: Buffer.from(options.tls.cert) },
        ]);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${options.port ?? 0}`, credentials, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    port,
    url: `${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    seen,
    get asked() {
      return asked;
    },
    failNext: (...answers) => void failures.push(...answers),
    async close() {
      server.forceShutdown();
      const released = [...sessions.values()].map((session) => session.release());
      sessions.clear();
      await Promise.all(released);
    },
  };
}

function failure(code: number, details: string): Error {
  return Object.assign(new Error(details), { code, details });
}

/** For `failNext`. */
export function fails(code: number, details: string): Answering {
  return (respond) => respond({ code, details });
}

function unary<Request>(handle: (request: Request) => Promise<object>) {
  return ({ request }: ServerUnaryCall<Request, object>, respond: sendUnaryData<object>): void =>
    answer(handle(request), respond);
}

function answer(answered: Promise<object>, respond: sendUnaryData<object>): void {
  answered.then(
    (value) => respond(null, value),
    (error: { code?: number; message: string }) =>
      respond({ code: error.code ?? status.INTERNAL, details: error.message }),
  );
}

/** As Triton does, with an axis more where the server makes batches. */
function metadata(name: string, session: InferenceSession, makesBatches: boolean): object {
  const list = (values: readonly InferenceSession.ValueMetadata[]): object[] =>
    values.flatMap((value) =>
      value.isTensor
        ? [
            {
              name: value.name,
              datatype: value.type === 'int64' ? 'INT64' : 'FP32',
              shape: [
                ...(makesBatches ? [-1] : []),
                ...value.shape.map((size) => (typeof size === 'number' ? size : -1)),
              ],
            },
          ]
        : [],
    );
  return { name, inputs: list(session.inputMetadata), outputs: list(session.outputMetadata) };
}

function tensorsOf({ inputs, raw_input_contents: raw }: InferRequest): Record<string, Tensor> {
  return Object.fromEntries(
    inputs.map(({ name, datatype, shape, contents }, position) => {
      const dims = shape.map(Number);
      const bytes = raw[position];
      const buffer = bytes === undefined ? undefined : new Uint8Array(bytes).buffer;
      const tensor =
        datatype === 'INT64'
          ? new Tensor(
              'int64',
              buffer ? new BigInt64Array(buffer) : BigInt64Array.from(contents?.int64_contents ?? [], BigInt),
              dims,
            )
          : new Tensor(
              'float32',
              buffer ? new Float32Array(buffer) : Float32Array.from(contents?.fp32_contents ?? []),
              dims,
            );
      return [name, tensor];
    }),
  );
}

/** In the form of the request. */
function answerOf(
  values: InferenceSession.OnnxValueMapType,
  { outputs: wanted }: InferRequest,
  raw: boolean,
): InferAnswer {
  const outputs = wanted.map(({ name }) => {
    const { data, dims } = values[name] as Tensor;
    return { name, dims: [...dims], floats: data as Float32Array };
  });
  return {
    outputs: outputs.map(({ name, dims, floats }) => ({
      name,
      datatype: 'FP32',
      shape: dims,
      ...(raw ? {} : { contents: { fp32_contents: [...floats] } }),
    })),
    raw_output_contents: raw ? outputs.map(({ floats }) => Buffer.copyBytesFrom(floats)) : [],
  };
}

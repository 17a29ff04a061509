import type { ServiceError } from '@grpc/grpc-js';
import type { GraphCall, GraphSignature } from '../graph-call.ts';
import { AnswerError, reasonOf, Unavailable } from './failures.ts';
import { GrpcChannels } from './grpc-channels.ts';
import { failureOf, NoSuchModel } from './grpc-failure.ts';
import { decodeInfer, encodeInfer } from './grpc-message.ts';
import { type GrpcMethod, type GrpcMethods, readGrpcSchema } from './grpc-schema.ts';
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

/** Of a float32, as raw or typed contents. */
const NUMBER_BYTES = 4;

export interface GrpcClientOptions {
  /** `http(s)://host:port` */
  url: string;
  protoFile: string;
}

type GrpcLibrary = typeof import('@grpc/grpc-js');

interface Opened {
  library: GrpcLibrary;
  methods: GrpcMethods;
  channels: GrpcChannels;
}

/** The protocol over gRPC. */
export class GrpcClient implements ProtocolClient {
  readonly #options: GrpcClientOptions;
  readonly #wallMs: () => number;
  #opening: Promise<Opened> | undefined;
  #asked = 0;

  /** @param wallMs the time by which the library reckons deadlines */
  constructor(options: GrpcClientOptions, wallMs: () => number) {
    this.#options = options;
    this.#wallMs = wallMs;
  }

  async ready(attempt: Attempt): Promise<void> {
    const { ready } = await this.#call((methods) => methods.ServerReady, {}, HEAD_BYTES_MAX, attempt);
    if (!ready) throw new Unavailable('it says that it is not ready', true);
  }

  async signature(model: ServedModel, attempt: Attempt): Promise<GraphSignature | undefined> {
    const { inputs, outputs } = await this.#call(
      (methods) => methods.ModelMetadata,
      requestOf(model),
      HEAD_BYTES_MAX,
      attempt,
    );
    return graphSignature(inputs, outputs);
  }

  async batchSizeMax(model: ServedModel, attempt: Attempt): Promise<number> {
    const { config } = await this.#call(
      (methods) => methods.ModelConfig,
      requestOf(model),
      HEAD_BYTES_MAX,
      attempt,
    );
    return config?.max_batch_size ?? 0;
  }

  async infer(model: ServedModel, form: TensorForm, call: GraphCall, attempt: Attempt): Promise<void> {
    this.#asked += 1;
    const request = encodeInfer(model, call, form, String(this.#asked), timeoutUs(attempt));
    const bytesMax = answerBytesMax(call, NUMBER_BYTES);
    const answer = await this.#call((methods) => methods.ModelInfer, request, bytesMax, attempt).catch(
      (error: unknown) => {
        throw error instanceof NoSuchModel ? new Unavailable(error.message, true) : error;
      },
    );
    decodeInfer(answer, call);
  }

  close(): void {
    // Where it could not be opened there is nothing to close.
    this.#opening?.then(({ channels }) => channels.close()).catch(() => undefined);
  }

  async #call<Request, Answer>(
    methodOf: (methods: GrpcMethods) => GrpcMethod<Request, Answer>,
    request: Request,
    bytesMax: number,
    { signal, leftMs }: Attempt,
  ): Promise<Answer> {
    this.#opening ??= this.#openChannels();
    const { library, methods, channels } = await this.#opening;
    if (signal.aborted) throw new Unavailable(reasonOf(signal.reason));
    const { path, requestSerialize, responseDeserialize } = methodOf(methods);
    const channel = channels.for(bytesMax);
    const deadline = this.#wallMs() + leftMs;
    return await new Promise<Answer>((resolve, reject) => {
      const fail = (error: ServiceError): void => {
        const failure = failureOf(library.status, error, signal);
        // Silence may be that of a connection that leads nowhere.
        if (failure instanceof Unavailable && !failure.wasAnswered && isTimeOut(library, error))
          channels.retire(channel);
        reject(failure);
      };
      const call = channel.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        new library.Metadata(),
        { deadline },
        (error, answer) => {
          signal.removeEventListener('abort', cancel);
          if (error !== null) fail(error);
          else if (answer === undefined) reject(new AnswerError('the answer is empty'));
          else resolve(answer);
        },
      );
      const cancel = (): void => call.cancel();
      signal.addEventListener('abort', cancel);
    });
  }

  async #openChannels(): Promise<Opened> {
    const { url, protoFile } = this.#options;
    const library = await import('@grpc/grpc-js');
    return { library, methods: await readGrpcSchema(protoFile), channels: new GrpcChannels(library, url) };
  }
}

function requestOf({ name, version }: ServedModel): { name: string; version: string } {
  return { name, version: version ?? '' };
}

function isTimeOut({ status }: GrpcLibrary, { code }: ServiceError): boolean {
  return code === status.DEADLINE_EXCEEDED || code === status.CANCELLED;
}

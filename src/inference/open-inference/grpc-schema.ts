import type { ModelInferRequest, ModelInferResponse } from './grpc-message.ts';

/** A method of the protocol, and how its messages are written and read. */
export interface GrpcMethod<Request, Answer> {
  path: string;
  requestSerialize(request: Request): Buffer;
  responseDeserialize(bytes: Buffer): Answer;
}

interface ModelRequest {
  name: string;
  version: string;
}

interface TensorMetadata {
  name: string;
  datatype: string;
  shape: number[];
}

/** Of the protocol's service, what is called here. */
export interface GrpcMethods {
  ServerReady: GrpcMethod<Record<string, never>, { ready: boolean }>;
  ModelMetadata: GrpcMethod<ModelRequest, { inputs: TensorMetadata[]; outputs: TensorMetadata[] }>;
  ModelConfig: GrpcMethod<ModelRequest, { config: { max_batch_size: number } | null }>;
  ModelInfer: GrpcMethod<ModelInferRequest, ModelInferResponse>;
}

const SERVICE = 'inference.GRPCInferenceService';

/** @param protoFile schemas/open-inference.proto: what its reader gives is of the types above, whatever comes */
export async function readGrpcSchema(protoFile: string): Promise<GrpcMethods> {
  // Only where it is used: with @grpc/grpc-js, and what they load, it takes 28 MB of a process.
  const { load } = await import('@grpc/proto-loader');
  const definition = await load(protoFile, { keepCase: true, longs: Number, arrays: true, defaults: true });
  return definition[SERVICE] as unknown as GrpcMethods;
}

import { describe } from 'vitest';
import { systemClock } from '../../src/adapters/system/clock.ts';
import {
  createOpenInferenceAccelerator,
  type OpenInferenceOptions,
} from '../../src/inference/open-inference/accelerator.ts';
import type { ModelRepository } from '../../src/inference/repository/open-repository.ts';
import type { Accelerator } from '../../src/ports/accelerator.ts';
import { grpcServer, PROTO_FILE } from '../unit/inference/open-inference/grpc-server.ts';
import { protocolServer, type ServedGraph } from '../unit/inference/open-inference/http-server.ts';
import { describeAccelerator } from './accelerator.suite.ts';

interface Served {
  url: string;
  close(): Promise<void>;
}

/** On a server that has every version of the repository. */
async function create(
  repository: ModelRepository,
  protocol: OpenInferenceOptions['protocol'],
  serve: (graphs: readonly ServedGraph[]) => Promise<Served>,
): Promise<Accelerator> {
  const versions = repository.families.flatMap((family) => family.versions);
  const server = await serve(
    await Promise.all(
      versions.map(async (version) => ({
        name: version.family,
        version: version.version,
        graph: await repository.readGraph(version),
      })),
    ),
  );
  const accelerator = createOpenInferenceAccelerator(
    { repository, clock: systemClock() },
    {
      protocol,
      url: server.url,
      protoFile: PROTO_FILE,
      modelName: '{family}',
      modelVersion: '{version}',
      kernels: ['dense'],
      memories: ['host'],
      timeoutMs: 10_000,
    },
  );
  return {
    ...accelerator,
    async close() {
      await accelerator.close();
      await server.close();
    },
  };
}

const SERVERS: readonly [
  string,
  OpenInferenceOptions['protocol'],
  (graphs: readonly ServedGraph[]) => Promise<Served>,
][] = [
  ['HTTP', 'http', (graphs) => protocolServer(graphs)],
  [
    'HTTP without binary tensors',
    'http',
    (graphs) => protocolServer(graphs, { form: 'json-only', nested: true }),
  ],
  ['gRPC', 'grpc', (graphs) => grpcServer(graphs)],
  ['gRPC without raw contents', 'grpc', (graphs) => grpcServer(graphs, { form: 'typed-only' })],
];

describe.each(SERVERS)('over %s', (_, protocol, serve) => {
  describeAccelerator({
    backend: 'open-inference',
    simulated: false,
    create: (repository) => create(repository, protocol, serve),
    tellsShapes: true,
    readsTensors: true,
  });
});

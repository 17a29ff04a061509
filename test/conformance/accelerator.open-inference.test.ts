import { systemClock } from '../../src/adapters/system/clock.ts';
import { createOpenInferenceAccelerator } from '../../src/inference/open-inference/accelerator.ts';
import type { ModelRepository } from '../../src/inference/repository/open-repository.ts';
import type { Accelerator } from '../../src/ports/accelerator.ts';
import {
  type ProtocolServerOptions,
  protocolServer,
} from '../unit/inference/open-inference/protocol-server.ts';
import { describeAccelerator } from './accelerator.suite.ts';

/** On a server that has every version of the repository. */
async function create(repository: ModelRepository, options: ProtocolServerOptions): Promise<Accelerator> {
  const versions = repository.families.flatMap((family) => family.versions);
  const server = await protocolServer(
    await Promise.all(
      versions.map(async (version) => ({
        name: version.family,
        version: version.version,
        graph: await repository.readGraph(version),
      })),
    ),
    options,
  );
  const accelerator = createOpenInferenceAccelerator(
    { repository, clock: systemClock() },
    {
      url: server.url,
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

for (const form of ['binary', 'json-only'] as const) {
  describeAccelerator({
    backend: 'open-inference',
    simulated: false,
    create: (repository) => create(repository, { form, nested: form === 'json-only' }),
    readsTensors: true,
  });
}

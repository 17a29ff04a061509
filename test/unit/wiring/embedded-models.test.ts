import { cpSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { folderModelSource } from '../../../src/adapters/model-source/folder.ts';
import { parseRequest } from '../../../src/cli/request-file.ts';
import { connect } from '../../../src/client/client.ts';
import { readUserFile } from '../../../src/config/user-file.ts';
import { describeVersion } from '../../../src/inference/repository/describe-version.ts';
import { embedded } from '../../../src/wiring/sdk.ts';
import { temporaryFolder } from '../cli/temporary-folder.ts';
import { rankerVersion } from '../inference/ranker-version.ts';

/** Far more than loading a model needs on a busy machine. */
const PATIENCE_MS = 60_000;

it(
  'a version that is published through the SDK scores who pins it, and everybody once the policy names it',
  async () => {
    const folder = temporaryFolder();
    cpSync('models/repository/ranker/1', folder.path('models/ranker/1'), { recursive: true });
    const source = rankerVersion(folder.path('shared'), '7');
    const transport = embedded({
      models: folder.path('models'),
      fleet: 'examples/fleets/one-pool.yaml',
      policy: 'examples/policies/one-pool.yaml',
      telemetry: silentTelemetry(),
    });
    const client = await connect({ transport });
    const request = parseRequest(
      JSON.parse(readUserFile('examples/requests/ranker.json').toString()),
      'ranker',
    );
    const versionFor = async (model: string): Promise<string> => {
      const { outcome, modelVersion } = await client.score({ ...request, model, deadlineMs: PATIENCE_MS });
      return `${outcome} ${modelVersion}`;
    };
    expect(await versionFor('ranker')).toBe('SCORED 1');
    expect(await versionFor('ranker@7')).toMatch(/^REJECTED/);

    const described = await describeVersion(folderModelSource(), source, new AbortController().signal);
    const body = JSON.stringify({ ...described, source });
    await client.control.publish({ scope: 'model/ranker', type: 'PUBLISH_MODEL', body });
    await vi.waitFor(async () => expect(await versionFor('ranker@7')).toBe('SCORED 7'), PATIENCE_MS);
    expect(await versionFor('ranker')).toBe('SCORED 1');

    const policy = `${readUserFile('examples/policies/one-pool.yaml')}\nmodels: {ranker: 7}\n`;
    await client.control.publish({ scope: 'policy/one-pool', type: 'PUBLISH_POLICY', body: policy });
    await vi.waitFor(async () => expect(await versionFor('ranker')).toBe('SCORED 7'), PATIENCE_MS);
    expect(await versionFor('ranker@1')).toBe('SCORED 1');
    await client.close();
  },
  2 * PATIENCE_MS,
);

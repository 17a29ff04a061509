import { expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { parseRequest } from '../../../src/cli/request-file.ts';
import { connect } from '../../../src/client/client.ts';
import { rankedCandidates } from '../../../src/client/ranking.ts';
import { readFp32, readIds } from '../../../src/client/tensors.ts';
import { readUserFile } from '../../../src/config/user-file.ts';
import { embedded } from '../../../src/wiring/sdk.ts';
import { temporaryFolder } from '../cli/temporary-folder.ts';
import { cascadeFolder } from '../inference/cascade/cascade-folder.ts';

/** Far more than loading models needs on a busy machine. */
const PATIENCE_MS = 60_000;

async function scored(models: string, model: string) {
  const transport = embedded({
    models,
    fleet: 'examples/fleets/one-pool.yaml',
    policy: 'examples/policies/one-pool.yaml',
    telemetry: silentTelemetry(),
  });
  const client = await connect({ transport });
  const request = parseRequest(
    JSON.parse(readUserFile('examples/requests/ranker.json').toString()),
    'ranker',
  );
  const result = await client.score({ ...request, model, deadlineMs: PATIENCE_MS });
  await client.close();
  return result;
}

it(
  'a request to a version with a cascade is answered with the stage of each candidate',
  async () => {
    const models = cascadeFolder(temporaryFolder().path('models'), '[{ model: two-tower@1, keep: 2 }]');
    const result = await scored(models, 'dcn@3');
    const first = await scored('models/repository', 'two-tower@1');
    expect(result).toMatchObject({ outcome: 'SCORED', model: 'dcn', modelVersion: '3', variant: 'ENHANCED' });
    const candidates = result.candidatesScored;
    expect(candidates).toBeGreaterThan(2);
    const survivors = rankedCandidates(first).slice(0, 2);
    expect([...(result.scoredStage ?? [])]).toEqual(
      [...Array(candidates).keys()].map((place) => (survivors.includes(place) ? 1 : 0)),
    );
    expect(rankedCandidates(result).slice(0, 2).toSorted()).toEqual(survivors.toSorted());
    if (result.candidateIds === null) throw new Error('the ids are gone');
    expect(readIds(result.candidateIds).length).toBe(candidates);
    expect(result.outputs.map(({ name }) => name)).toEqual(['click', 'conversion']);
    const conversion = readFp32(result.outputs[1]?.contents ?? Buffer.alloc(0));
    expect([...conversion].filter(Number.isFinite).length).toBe(2);
  },
  2 * PATIENCE_MS,
);

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Stack } from '../../src/local-stack/stack.ts';
import { startStack } from '../../src/local-stack/start-stack.ts';
import { type ControlRoom, openControlRoom } from './control-events.ts';
import { expectAllScored, type Load, moreResults, startLoad } from './load.ts';
import { eventually, type RealPipeline, startRealPipeline } from './real-pipeline.ts';

const dir = mkdtempSync(join(tmpdir(), 'millrace-registry-reset-'));
let stack: Stack;
let pipeline: RealPipeline;
let room: ControlRoom;
let load: Load | undefined;

const policy = (version: number): string =>
  `apiVersion: millrace/v1
kind: RoutingPolicy
name: one-pool
version: ${version}
tree:
  - id: everything
    to: {accelerator: cpu, kernel: dense, memory: host}
tests:
  - {signals: {}, leaf: everything}
rollout: {shadow: 1s, canary: {percent: 20, dwell: 600s}, ramp: [50], unit: requestId}
`;

beforeAll(async () => {
  stack = await startStack({ dir });
  pipeline = await startRealPipeline(stack.environment, {
    environment: { MILLRACE_CONTROLLER_ACCEPT_UNSIGNED: 'true' },
  });
  room = await openControlRoom(pipeline.client, 'policy/one-pool');
  await room.send('PUBLISH_POLICY', policy(1));
});

afterAll(async () => {
  await load?.end();
  await pipeline?.close();
  await stack?.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** The registry comes back empty, and somebody else is the first to register: what an id meant before, it means no more. */
async function resetRegistry(): Promise<void> {
  await stack.stopRegistry();
  for (const file of ['schemas.mv.db', 'schemas.trace.db'])
    rmSync(join(dir, 'registry', file), { force: true });
  await stack.startRegistry();
  const url = stack.environment['MILLRACE_REGISTRY_URL'];
  expect(await (await fetch(`${url}/subjects`)).json()).toEqual([]);
  for (let n = 0; n < 3; n += 1) {
    const schema = JSON.stringify({ type: 'record', name: `O${n}`, fields: [{ name: 'a', type: 'long' }] });
    await fetch(`${url}/subjects/other-${n}-value/versions`, {
      method: 'POST',
      headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
      body: JSON.stringify({ schema }),
    });
  }
}

describe('a registry that lost its data and gives ids anew', () => {
  it('row 35: costs no request an answer, whichever service is restarted first', async () => {
    load = await startLoad(pipeline.client);
    await moreResults(load.ledger, 30);
    await resetRegistry();
    await moreResults(load.ledger, 30);
    for (const name of ['router', 'worker-1', 'extractor']) {
      await pipeline.stop(name);
      await pipeline.start(name);
      await moreResults(load.ledger, 100);
    }
    expectAllScored(await load.end());
  });

  it('leaves the control log readable to a controller that starts then', async () => {
    await pipeline.stop('controller');
    await pipeline.start('controller');
    await eventually(
      () => room.events.some(({ type, term }) => type === 'leadership-taken' && term === 2),
      'the controller takes the next term',
    );
    await room.send('PUBLISH_POLICY', policy(2));
    expect(room.events.at(-1)).toMatchObject({ term: 2, accepted: true });
  });
});

import { systemClock } from '../src/adapters/system/clock.ts';
import { createOnnxCpuAccelerator } from '../src/inference/onnx-cpu/accelerator.ts';
import { createOpenInferenceAccelerator } from '../src/inference/open-inference/accelerator.ts';
import type { ServerOptions } from '../src/inference/open-inference/server.ts';
import { openRepository } from '../src/inference/repository/open-repository.ts';
import type { Accelerator, LoadedModel } from '../src/ports/accelerator.ts';
import { rankerItem } from '../test/conformance/accelerator.fixture.ts';
import type { ServerName } from '../test/interop/environments.ts';
import { startRealServer } from '../test/interop/real-server.ts';
import { PROTO_FILE } from '../test/unit/inference/open-inference/grpc-server.ts';
import type { BenchRow } from './run.ts';

const CANDIDATES = 200;
const HISTORY_ROWS = 20;
const WARM_UP_CALLS = 50;
const ROUNDS = 60;
const CALLS_PER_ROUND = 10;

interface Subject {
  server: ServerName;
  /** Where it has versions; else they are part of the name. */
  versions: boolean;
  /** How tensors travel over HTTP; over gRPC all of them take bytes. */
  http: string;
}

const SUBJECTS: readonly Subject[] = [
  { server: 'triton', versions: true, http: 'HTTP, bytes' },
  { server: 'kserve', versions: false, http: 'HTTP, bytes' },
  { server: 'mlserver', versions: true, http: 'HTTP, JSON' },
];

const clock = systemClock();

/** What a batch of the committed ranker costs its worker on each server of test/interop, over HTTP and over gRPC in turns, beside computing it itself. */
export async function run(): Promise<{ rows: BenchRow[] }> {
  const rows: BenchRow[] = [];
  for (const subject of SUBJECTS) rows.push(...(await measure(subject)));
  return { rows };
}

async function measure({ server, versions, http }: Subject): Promise<BenchRow[]> {
  const started = await startRealServer(server, [
    versions ? 'toy/versions/1' : 'toy-1',
    versions ? 'ranker/versions/1' : 'ranker-1',
  ]);
  const repository = await openRepository(started.models);
  const over = (protocol: ServerOptions['protocol']): Accelerator =>
    createOpenInferenceAccelerator(
      { repository, clock },
      {
        protocol,
        url: started.urls[protocol],
        protoFile: PROTO_FILE,
        modelName: versions ? '{family}' : '{family}-{version}',
        modelVersion: versions ? '{version}' : '',
        kernels: ['dense'],
        memories: ['host'],
        timeoutMs: 30_000,
      },
    );
  const accelerators = {
    [http]: over('http'),
    'gRPC, bytes': over('grpc'),
    'onnx-cpu, in the worker': createOnnxCpuAccelerator({ repository, clock }, { intraOpThreads: 1 }),
  };
  try {
    const medians = await inTurns(accelerators);
    const rows = Object.entries(medians).map(([name, { ms }]) => ({
      metric: `${server}, ${CANDIDATES} candidates, ${name}, median`,
      value: ms,
      unit: 'ms',
    }));
    const ratio = medianOf(
      (medians['gRPC, bytes']?.rounds ?? []).map(
        (ms, round) => ms / (medians[http]?.rounds[round] ?? Number.NaN),
      ),
    );
    return [...rows, { metric: `${server}, gRPC / ${http}, of the same round`, value: ratio, unit: '×' }];
  } finally {
    for (const accelerator of Object.values(accelerators)) await accelerator.close();
    await started.close();
  }
}

interface Medians {
  ms: number;
  /** Of each round. */
  rounds: number[];
}

/** One round each, in turns, so that what else the machine does falls on all of them. */
async function inTurns(
  accelerators: Readonly<Record<string, Accelerator>>,
): Promise<Record<string, Medians>> {
  const models = new Map<string, LoadedModel>();
  for (const [name, accelerator] of Object.entries(accelerators)) {
    const model = await accelerator.load('ranker', '1');
    models.set(name, model);
    await callsMs(model, WARM_UP_CALLS);
  }
  const calls: Record<string, number[]> = {};
  const rounds: Record<string, number[]> = {};
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, model] of models) {
      const ms = await callsMs(model, CALLS_PER_ROUND);
      calls[name] = [...(calls[name] ?? []), ...ms];
      rounds[name] = [...(rounds[name] ?? []), medianOf(ms)];
    }
  }
  return Object.fromEntries(
    [...models.keys()].map((name) => [name, { ms: medianOf(calls[name] ?? []), rounds: rounds[name] ?? [] }]),
  );
}

async function callsMs(model: LoadedModel, calls: number): Promise<number[]> {
  const taken: number[] = [];
  for (let call = 0; call < calls; call += 1) {
    const item = rankerItem(call, CANDIDATES, HISTORY_ROWS);
    const startedMs = clock.monotonicMs();
    const { items } = await model.run([item], 'dense');
    taken.push(clock.monotonicMs() - startedMs);
    if (items[0]?.status !== 'scored') throw new Error('a call failed', { cause: items[0] });
  }
  return taken;
}

function medianOf(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

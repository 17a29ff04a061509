import { cpus } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { systemClock } from '../src/adapters/system/clock.ts';
import { seededRandom } from '../src/core/random/seeded-random.ts';
import type { Tensor } from '../src/core/request/tensor.ts';
import { createOnnxCpuAccelerator } from '../src/inference/onnx-cpu/accelerator.ts';
import { type ModelFamily, openRepository } from '../src/inference/repository/open-repository.ts';
import type { LoadedModel, ScoreItem } from '../src/ports/accelerator.ts';

/** How many requests a second the committed models score, on one thread. `node bench/model.ts` prints it. */

export interface BenchRow {
  metric: string;
  value: number;
  unit: string;
  target?: number;
  relation?: '<=' | '>=';
}

const SEED = 20_260_101;
const SEQUENCE_ROWS = 20;
const WARM_UP_MS = 300;
const MEASURE_MS = 1_500;
const SHAPES = [
  { requests: 1, candidates: 64 },
  { requests: 1, candidates: 256 },
  { requests: 1, candidates: 1024 },
  { requests: 16, candidates: 64 },
  { requests: 16, candidates: 256 },
];

export async function run(): Promise<{ rows: BenchRow[] }> {
  const repository = await openRepository(join(import.meta.dirname, '../models/repository'));
  const accelerator = createOnnxCpuAccelerator({ repository, clock: systemClock() }, { intraOpThreads: 1 });
  const rows: BenchRow[] = [];
  try {
    for (const family of repository.families) {
      for (const { version, variant } of family.versions) {
        const model = await accelerator.load(family.family, version);
        for (const shape of SHAPES)
          rows.push(...(await measure(`${family.family}@${version} (${variant})`, model, family, shape)));
        await model.unload();
      }
    }
  } finally {
    await accelerator.close();
  }
  return { rows };
}

async function measure(
  name: string,
  model: LoadedModel,
  family: ModelFamily,
  { requests, candidates }: (typeof SHAPES)[number],
): Promise<BenchRow[]> {
  const items = Array.from({ length: requests }, (_, i) => makeItem(family, candidates, i));
  await scoreFor(model, items, WARM_UP_MS, 2);
  const alone = await scoreFor(model, items, MEASURE_MS, 1);
  const overlapped = await scoreFor(model, items, MEASURE_MS, 2);
  const shape = `${requests} × ${candidates} candidates`;
  return [
    {
      metric: `${name}, ${shape}, one batch at a time`,
      value: round(alone.requestsPerS),
      unit: 'requests/s',
    },
    {
      metric: `${name}, ${shape}, next batch packed meanwhile`,
      value: round(overlapped.requestsPerS),
      unit: 'requests/s',
    },
    { metric: `${name}, ${shape}, median compute`, value: alone.computeMsP50, unit: 'ms' },
    {
      metric: `${name}, ${shape}, predicted`,
      value: model.predictMs(requests, requests * candidates),
      unit: 'ms',
    },
  ];
}

/** Runs the batch over and over, `depth` of them at a time. */
async function scoreFor(
  model: LoadedModel,
  items: readonly ScoreItem[],
  durationMs: number,
  depth: number,
): Promise<{ requestsPerS: number; computeMsP50: number }> {
  const computeMs: number[] = [];
  const startMs = performance.now();
  const lane = async (): Promise<void> => {
    while (performance.now() - startMs < durationMs) {
      const batch = await model.run(items, 'dense');
      const failure = batch.items.find((item) => item.status === 'failed');
      if (failure?.status === 'failed') throw failure.error;
      computeMs.push(batch.computeMs);
    }
  };
  await Promise.all(Array.from({ length: depth }, lane));
  const elapsedS = (performance.now() - startMs) / 1000;
  computeMs.sort((a, b) => a - b);
  return {
    requestsPerS: (computeMs.length * items.length) / elapsedS,
    computeMsP50: computeMs[computeMs.length >> 1] ?? Number.NaN,
  };
}

/** A request of seeded noise in the family's shapes. */
function makeItem({ family, contract }: ModelFamily, candidates: number, request: number): ScoreItem {
  const random = seededRandom(SEED).stream(`${family}/${candidates}/${request}`);
  const tensor = (name: string, datatype: string, shape: number[]): Tensor => {
    const elements = shape.reduce((product, size) => product * size, 1);
    const contents =
      datatype === 'INT64'
        ? Buffer.alloc(8 * elements)
        : Buffer.from(Float32Array.from({ length: elements }, () => random.next() * 2 - 1).buffer);
    return { name, datatype, shape, contents };
  };
  const tensorsOn = (side: 'request' | 'candidate', free: number): Tensor[] =>
    contract.inputs
      .filter((input) => input.side === side)
      .map(({ name, datatype, shape }) =>
        tensor(
          name,
          datatype,
          shape.map((size) => (size === -1 ? free : size)),
        ),
      );
  return {
    requestTensors: tensorsOn('request', SEQUENCE_ROWS),
    candidateTensors: tensorsOn('candidate', candidates),
    hints: {},
    scoreLimit: candidates,
  };
}

function round(value: number): number {
  return Math.round(value);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { rows } = await run();
  console.log(
    `node ${process.version}, ${cpus()[0]?.model ?? 'unknown CPU'} × ${cpus().length}, seed ${SEED}`,
  );
  for (const { metric, value, unit } of rows)
    console.log(`${metric.padEnd(70)} ${value.toPrecision(4).padStart(10)} ${unit}`);
}

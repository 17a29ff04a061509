import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { systemClock } from '../src/adapters/system/clock.ts';
import { type Compared, crossover } from '../src/core/profile/crossover.ts';
import { seededRandom } from '../src/core/random/seeded-random.ts';
import { float32 } from '../src/inference/onnx-file/constant.ts';
import { writeGraph } from '../src/inference/onnx-file/write-graph.ts';
import { openRepository } from '../src/inference/repository/open-repository.ts';
import { createSparseCpuAccelerator } from '../src/inference/sparse-cpu/accelerator.ts';
import { SparseProduct } from '../src/inference/sparse-kernel/sparse-product.ts';
import type { LoadedModel } from '../src/ports/accelerator.ts';
import {
  sparseValues,
  type WideSizes,
  wideItem,
  writeWideVersion,
} from '../test/unit/inference/sparse-cpu/wide-version.ts';
import type { BenchRow } from './run.ts';
import { ratioInTurns } from './sparse/turns.ts';

const SEED = 20_260_101;
const ZERO_SHARES = [0, 0.5, 0.7, 0.8, 0.9, 0.96, 0.99];
const SHOWN_SHARES = [0.96, 0.99];
/** What is asked for where more than 95 % are zeros. */
const [TARGET_SHARE, TARGET_RATIO] = [0.96, 1.25];
const MEASURE_MS = 500;

interface Product extends WideSizes {
  rows: number;
}

const PRODUCTS: readonly Product[] = [
  ...[128, 1_024, 4_096].flatMap((inner) => [16, 64, 256].map((columns) => ({ rows: 256, inner, columns }))),
  { rows: 16, inner: 1_024, columns: 64 },
  { rows: 64, inner: 1_024, columns: 64 },
  { rows: 1_024, inner: 1_024, columns: 64 },
];

const VERSIONS: readonly WideSizes[] = [
  { inner: 1_024, columns: 64 },
  { inner: 1_024, columns: 256 },
];
const BATCHES = [
  { requests: 1, candidates: 256 },
  { requests: 16, candidates: 64 },
];

interface Measured {
  name: string;
  /** By rising share of zeros. */
  compared: readonly Compared[];
  target?: number;
}

/**
 * The sparse kernel against the dense one, in turns within one run: the product alone (the kernel against a Gemm in a session of ONNX Runtime) over
 * sizes and shares of zeros, and whole batches of a model of random weights through the accelerator, packing and the way to its thread included.
 * `node bench/sparse.ts` shows all shares of zeros, and keeps nothing.
 */
export async function run(): Promise<{ rows: BenchRow[] }> {
  const rows: BenchRow[] = [];
  for await (const measured of measureAll()) rows.push(...rowsOf(measured));
  return { rows };
}

async function* measureAll(): AsyncGenerator<Measured> {
  for (const product of PRODUCTS) yield await measureProduct(product);
  for (const sizes of VERSIONS) yield* measureVersion(sizes);
}

async function measureProduct({ rows, inner, columns }: Product): Promise<Measured> {
  const random = seededRandom(SEED).stream(`${rows}/${inner}/${columns}`);
  const values = (count: number): Float32Array => Float32Array.from(sparseValues(random, count, 0));
  const [weights, bias] = [values(inner * columns), values(columns)];
  const session = await gemm({ inner, columns }, weights, bias);
  const product = new SparseProduct({ inner, columns, weights, bias });
  const compared: Compared[] = [];
  for (const zeroShare of ZERO_SHARES) {
    const x = Float32Array.from(sparseValues(random, rows * inner, zeroShare));
    const ratio = await ratioInTurns(
      () => session.run({ x: new Tensor('float32', x, [rows, inner]) }),
      async () => product.multiply(x, rows),
      MEASURE_MS,
    );
    compared.push({ zeroShare, ratio });
  }
  await session.release();
  return { name: `product [${rows}, ${inner}] × [${inner}, ${columns}]`, compared };
}

function gemm(
  { inner, columns }: WideSizes,
  weights: Float32Array,
  bias: Float32Array,
): Promise<InferenceSession> {
  const file = writeGraph({
    name: 'product',
    irVersion: 10n,
    opset: 20,
    inputs: [{ name: 'x', type: 1, shape: ['N', inner] }],
    outputs: [{ name: 'y', type: 1, shape: ['N', columns] }],
    constants: new Map([
      ['w', float32([inner, columns], weights)],
      ['b', float32([columns], bias)],
    ]),
    nodes: [{ op: 'Gemm', name: 'y', inputs: ['x', 'w', 'b'], outputs: ['y'], attributes: [] }],
  });
  return InferenceSession.create(file, { intraOpNumThreads: 1, interOpNumThreads: 1 });
}

async function* measureVersion(sizes: WideSizes): AsyncGenerator<Measured> {
  const root = mkdtempSync(join(tmpdir(), 'millrace-sparse-'));
  await writeWideVersion(root, sizes);
  const repository = await openRepository(root);
  const accelerator = createSparseCpuAccelerator({ repository, clock: systemClock() });
  try {
    const model = await accelerator.load('wide', '1');
    for (const batch of BATCHES) {
      const name = `model ${sizes.inner} → ${sizes.columns}, ${batch.requests} × ${batch.candidates} candidates`;
      for (const inFlight of [1, 2]) {
        const compared = await compareBatches(model, sizes, batch, inFlight);
        yield { name: `${name}, batches in flight: ${inFlight}`, compared, target: TARGET_SHARE };
      }
    }
  } finally {
    await accelerator.close();
    rmSync(root, { recursive: true, force: true });
  }
}

async function compareBatches(
  model: LoadedModel,
  sizes: WideSizes,
  { requests, candidates }: (typeof BATCHES)[number],
  inFlight: number,
): Promise<Compared[]> {
  const compared: Compared[] = [];
  for (const zeroShare of ZERO_SHARES) {
    const items = Array.from({ length: requests }, (_, seed) =>
      wideItem(sizes, { seed, candidates, zeroShare }),
    );
    const run = async (kernel: string): Promise<void> => {
      const batch = await model.run(items, kernel);
      for (const item of batch.items) if (item.status === 'failed') throw item.error;
    };
    const runs = (kernel: string) => () => Promise.all(Array.from({ length: inFlight }, () => run(kernel)));
    compared.push({ zeroShare, ratio: await ratioInTurns(runs('dense'), runs('sparse'), MEASURE_MS) });
  }
  return compared;
}

function rowsOf({ name, compared, target }: Measured): BenchRow[] {
  const shown = compared.filter(({ zeroShare }) => SHOWN_SHARES.includes(zeroShare));
  return [
    {
      metric: `${name}: sparse is as fast as dense at zeros of`,
      value: 100 * crossover(compared),
      unit: '%',
    },
    ...shown.map(({ zeroShare, ratio }) => ({
      metric: `${name}: ${100 * zeroShare} % zeros, sparse / dense`,
      value: ratio,
      unit: '×',
      ...(zeroShare === target ? { target: TARGET_RATIO, relation: '>=' as const } : {}),
    })),
  ];
}

if (import.meta.main) {
  console.log(
    `node ${process.version}, ${cpus()[0]?.model ?? 'unknown CPU'} × ${cpus().length}, seed ${SEED}`,
  );
  const columns = [...ZERO_SHARES.map((share) => `${100 * share} %`), 'as fast at'];
  console.log(
    `${'times as fast as dense, at zeros of'.padEnd(62)}${columns.map((each) => each.padStart(11)).join('')}`,
  );
  for await (const { name, compared } of measureAll()) {
    const cells = [
      ...compared.map(({ ratio }) => ratio.toPrecision(3)),
      `${(100 * crossover(compared)).toFixed(0)} %`,
    ];
    console.log(`${name.padEnd(62)}${cells.map((each) => each.padStart(11)).join('')}`);
  }
}

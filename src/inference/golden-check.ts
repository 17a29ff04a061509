import { MillraceError } from '../core/errors.ts';
import { own } from '../core/own.ts';
import type { GraphCall, RunGraph, SlabTensor } from './graph-call.ts';
import { align } from './memory/slab-arena.ts';
import type { Golden, GoldenCase, GoldenTensor } from './repository/golden.ts';
import type { ModelVersion } from './repository/model-version.ts';
import { planTiles } from './rocs/tile-plan.ts';

/**
 * Runs a version's golden cases: each head, and the scores that rankBy makes of them, must be what the case says, with
 * |got − want| ≤ absolute + relative·|want|.
 * @param refused what a call that failed is to the caller
 * @throws MillraceError INVALID_MODEL with the case, the output and the first value that differs
 */
export async function checkGolden(
  version: ModelVersion,
  golden: Golden,
  runGraph: RunGraph,
  refused: (version: ModelVersion, message: string) => MillraceError,
): Promise<void> {
  for (const oneCase of golden.cases) {
    const placed = placeCase(version, oneCase);
    const answer = await runGraph(placed);
    if (answer.kind !== 'ran') throw refused(version, answer.message);
    const { slab } = answer;
    const heads = placed.outputs.map(({ offset, dims }) => new Float32Array(slab, offset, dims[0] ?? 0));
    version.heads.forEach(({ name }, position) => {
      compare(version, golden, oneCase, name, heads[position], own(oneCase.outputs, name));
    });
    const count = oneCase.scores.shape[0] ?? 0;
    compare(version, golden, oneCase, 'scores', version.rankBy.score(heads, {}, count), oneCase.scores);
  }
}

function placeCase(version: ModelVersion, oneCase: GoldenCase): GraphCall {
  let bytes = 0;
  const place = (name: string, tensor: GoldenTensor | undefined): SlabTensor => {
    if (tensor === undefined) throw problem(version, oneCase, `lacks ${name}`);
    const offset = bytes;
    bytes = align(offset + tensor.contents.length);
    return { name, datatype: tensor.datatype, offset, dims: tensor.shape };
  };
  const inputs = { ...oneCase.inputs, ...tilesOf(version, oneCase) };
  const names = [...version.inputs.map(({ name }) => name), ...Object.values(version.tiles ?? {})];
  const feeds = names.map((name) => place(name, own(inputs, name)));
  const outputs = version.heads.map(({ name }) => place(name, own(oneCase.outputs, name)));
  const slab = new ArrayBuffer(bytes);
  for (const { name, offset } of feeds) {
    const contents = own(inputs, name)?.contents;
    if (contents !== undefined) new Uint8Array(slab).set(contents, offset);
  }
  return { slab, feeds, outputs };
}

/** A case says which request each candidate is of; how they lie in tiles follows from that. */
function tilesOf(
  { tiles, inputs }: ModelVersion,
  { inputs: given }: GoldenCase,
): Record<string, GoldenTensor> {
  const index = inputs.find(({ side }) => side === 'request-index');
  const requestOf = index === undefined ? undefined : own(given, index.name)?.contents;
  if (tiles === undefined || requestOf === undefined) return {};
  const rows = BigInt64Array.from({ length: requestOf.length / 8 }, (_, n) =>
    requestOf.readBigInt64LE(8 * n),
  );
  const requests = rows.reduce((max, row) => Math.max(max, Number(row)), -1) + 1;
  const plan = planTiles(rows, requests);
  const int64 = (values: BigInt64Array, shape: number[]): GoldenTensor => ({
    datatype: 'INT64',
    shape,
    contents: Buffer.copyBytesFrom(values),
  });
  return {
    [tiles.candidates]: int64(plan.candidates, [plan.tiles, plan.slots]),
    [tiles.requests]: int64(plan.requests, [plan.tiles]),
    [tiles.slots]: int64(plan.slotOf, [rows.length]),
  };
}

function compare(
  version: ModelVersion,
  golden: Golden,
  oneCase: GoldenCase,
  name: string,
  got: Float32Array | undefined,
  tensor: GoldenTensor | undefined,
): void {
  const want = tensor === undefined ? new Float32Array(0) : floats(tensor.contents);
  if (got?.length !== want.length) {
    throw problem(version, oneCase, `gives ${got?.length} values of ${name}, not ${want.length}`);
  }
  const { absolute, relative } = golden.tolerance;
  const wrong = want.findIndex(
    (value, i) => !(Math.abs((got[i] ?? Number.NaN) - value) <= absolute + relative * Math.abs(value)),
  );
  if (wrong >= 0) {
    throw problem(version, oneCase, `gives ${got[wrong]} for ${name}[${wrong}], not ${want[wrong]}`);
  }
}

function floats(contents: Buffer): Float32Array {
  return Float32Array.from({ length: contents.length / 4 }, (_, i) => contents.readFloatLE(4 * i));
}

function problem(version: ModelVersion, oneCase: GoldenCase, what: string): MillraceError {
  const label = `${version.family}/${version.version}: golden case ${oneCase.name}`;
  return new MillraceError('INVALID_MODEL', `${label} ${what}`, {
    advice: 'The graph computes something else here than where it was exported.',
  });
}

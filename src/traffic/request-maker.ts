import { makeScoreRequest, makeTensor, type ScoreRequest, type Tensor } from '../contracts/records.ts';
import type { RandomStream } from '../ports/random.ts';
import { type Catalogue, type CatalogueUser, ITEM_FEATURES } from './catalogue.ts';

/** How big a request is. */
export interface RequestShape {
  candidates: number;
  /** At most so many of the user's last history rows are sent. */
  historyRows: number;
}

export interface RequestMaker {
  make(requestId: string, shape: RequestShape): ScoreRequest;
}

const SURFACES = ['feed', 'search', 'mail'] as const;
const DAY_HOURS = 24;
const FLOAT_BYTES = 4;
const ID_BYTES = 8;
/** Of the user's features: the request's context begins here. */
const CONTEXT_SLOT = 16;

export interface RequestMakerOptions {
  deadlineMs?: number;
  model?: string;
  /** Exponent of Zipf's law by which users are drawn; 0: all alike. Default 1. */
  userSkew?: number;
}

/** Makes requests of the `ranker` family from the synthetic catalogue: a Zipf-popular user, popular candidates first. */
export function createRequestMaker(
  catalogue: Catalogue,
  random: RandomStream,
  options: RequestMakerOptions = {},
): RequestMaker {
  const { userSkew = 1 } = options;
  const pickItem = cumulative(catalogue.popularity);
  const itemIds = Buffer.from(BigInt64Array.from(catalogue.itemIds, BigInt).buffer);
  const itemRows = bytesOf(catalogue.itemFeatures);
  const pickUser = cumulative(catalogue.users.map((_, index) => (index + 1) ** -userSkew));
  return {
    make(requestId, shape) {
      const user = catalogue.users[pickUser(random.next())] ?? firstUser(catalogue);
      const items = pickItems(pickItem, random, shape.candidates, catalogue.itemIds.length);
      const mobile = random.next() < 0.6;
      return makeScoreRequest({
        requestId,
        model: options.model ?? 'ranker',
        deadlineMs: options.deadlineMs ?? null,
        value: Math.exp(random.next() * 2 - 1),
        bucketKey: `user-${user.id}`,
        baselineCandidates: shape.candidates,
        candidateIds: idTensor(itemIds, items),
        requestTensors: [
          userTensor(user, random.next() * DAY_HOURS, random.next() < 2 / 7, mobile),
          historyTensor(user, shape.historyRows),
        ],
        candidateTensors: [itemTensor(itemRows, items)],
        context: {
          surface: SURFACES[random.below(SURFACES.length)] ?? 'feed',
          device: mobile ? 'mobile' : 'desktop',
        },
      });
    },
  };
}

function firstUser(catalogue: Catalogue): CatalogueUser {
  const user = catalogue.users[0];
  if (user === undefined) throw new Error('the catalogue has no users');
  return user;
}

/** Draws an index with probability in proportion to its weight, by bisection. */
function cumulative(weights: readonly number[]): (draw: number) => number {
  const sums: number[] = [];
  let total = 0;
  for (const weight of weights) {
    total += weight;
    sums.push(total);
  }
  return (draw) => {
    const wanted = draw * total;
    let low = 0;
    let high = sums.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sums[middle] ?? 0) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

/** Distinct items while there are enough, in the order drawn: popular ones tend to come first, as from an earlier stage. */
function pickItems(
  pick: (draw: number) => number,
  random: RandomStream,
  count: number,
  available: number,
): number[] {
  const items = new Set<number>();
  const wanted = Math.min(count, available);
  for (let tries = 0; items.size < wanted && tries < wanted * 4; tries += 1) items.add(pick(random.next()));
  for (let next = random.below(available); items.size < wanted; next = (next + 1) % available)
    items.add(next);
  return [...items];
}

function bytesOf(floats: Float32Array): Buffer {
  return Buffer.from(floats.buffer, floats.byteOffset, floats.byteLength);
}

function userTensor(user: CatalogueUser, hour: number, weekend: boolean, mobile: boolean): Tensor {
  const contents = Buffer.allocUnsafe(user.features.byteLength);
  bytesOf(user.features).copy(contents);
  const angle = (2 * Math.PI * hour) / DAY_HOURS;
  const context = [Math.sin(angle), Math.cos(angle), weekend ? 1 : 0, mobile ? 1 : 0];
  for (const [place, value] of context.entries())
    contents.writeFloatLE(value, (CONTEXT_SLOT + place) * FLOAT_BYTES);
  return makeTensor({ name: 'user', datatype: 'FP32', shape: [user.features.length], contents });
}

function historyTensor(user: CatalogueUser, rowsMax: number): Tensor {
  const rows = Math.min(rowsMax, user.history.length / ITEM_FEATURES);
  const last = user.history.subarray(user.history.length - rows * ITEM_FEATURES);
  return makeTensor({
    name: 'history',
    datatype: 'FP32',
    shape: [rows, ITEM_FEATURES],
    contents: bytesOf(last),
  });
}

/** @param rows of the whole catalogue */
function itemTensor(rows: Buffer, items: readonly number[]): Tensor {
  const shape = [items.length, ITEM_FEATURES];
  const contents = gathered(rows, items, ITEM_FEATURES * FLOAT_BYTES);
  return makeTensor({ name: 'item', datatype: 'FP32', shape, contents });
}

/** @param ids of the whole catalogue */
function idTensor(ids: Buffer, items: readonly number[]): Tensor {
  const contents = gathered(ids, items, ID_BYTES);
  return makeTensor({ name: 'candidate_ids', datatype: 'INT64', shape: [items.length], contents });
}

/** The rows of these items, one after another. A small buffer of Node's own comes out of a pool, which an array of numbers does not. */
function gathered(rows: Buffer, items: readonly number[], rowBytes: number): Buffer {
  const contents = Buffer.allocUnsafe(items.length * rowBytes);
  let at = 0;
  for (const item of items) {
    rows.copy(contents, at, item * rowBytes, (item + 1) * rowBytes);
    at += rowBytes;
  }
  return contents;
}

import { join } from 'node:path';
import type { RecordCodec } from '../../src/contracts/codec.ts';
import type { ScoreRequest } from '../../src/contracts/records.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';
import { readCatalogue } from '../../src/traffic/catalogue.ts';
import { createRequestMaker, type RequestShape } from '../../src/traffic/request-maker.ts';

export const SEED = 1;
const DISTINCT_REQUESTS = 64;
const HISTORY_ROWS = 2;
const ID_LENGTH = 16;
/** Nothing may expire while a saturated pipeline is measured. */
const DEADLINE_MS = 600_000;

/** Encoded requests of one size, made beforehand: under load only a copy and a new id are left to do. */
export interface EncodedRequests {
  readonly candidates: number;
  readonly bytes: number;
  /** The nth request: its id, 16 bytes of ASCII, is also its key. */
  make(n: number): { key: Buffer; value: Buffer };
  /** The same requests before encoding. */
  readonly requests: readonly ScoreRequest[];
}

interface Template {
  value: Buffer;
  idAt: number;
}

/** So many candidates, their rows inline or their ids alone. */
export interface ExactRequests {
  candidates: number;
  byIds: boolean;
}

/** Requests from the catalogue, of just these candidates, or with as many as fit into so many bytes. */
export function encodedRequests(
  size: number | ExactRequests,
  codec: RecordCodec<ScoreRequest>,
): EncodedRequests {
  const catalogue = readCatalogue(join(import.meta.dirname, '../../models/catalogue'));
  const maker = createRequestMaker(catalogue, seededRandom(SEED).stream('requests'), {
    deadlineMs: DEADLINE_MS,
  });
  const byIds = typeof size === 'object' && size.byIds;
  const make = (candidates: number): ScoreRequest => {
    const request = maker.make(idOf(0), shapeOf(candidates));
    return byIds ? { ...request, candidateTensors: [] } : request;
  };
  const candidates =
    typeof size === 'object' ? size.candidates : fitting(size, (n) => codec.encode(make(n)).length);
  const requests = Array.from({ length: DISTINCT_REQUESTS }, () => make(candidates));
  const templates = requests.map((request): Template => {
    const value = codec.encode(request);
    return { value, idAt: value.indexOf(idOf(0)) };
  });
  return {
    candidates,
    bytes: templates[0]?.value.length ?? 0,
    requests,
    make(n) {
      const template = templates[n % templates.length];
      if (template === undefined) throw new RangeError('there are no requests');
      const value = Buffer.from(template.value);
      const key = value.subarray(template.idAt, template.idAt + ID_LENGTH);
      key.write(idOf(n), 'latin1');
      return { key, value };
    },
  };
}

function fitting(bytes: number, sizeOf: (candidates: number) => number): number {
  const one = sizeOf(1);
  const perCandidate = (sizeOf(21) - one) / 20;
  return Math.max(1, 1 + Math.floor((bytes - one) / perCandidate));
}

function shapeOf(candidates: number): RequestShape {
  return { candidates, historyRows: HISTORY_ROWS };
}

function idOf(n: number): string {
  return `r${String(n).padStart(ID_LENGTH - 1, '0')}`;
}

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

/** Requests from the catalogue with as many candidates as fit into `bytes`. */
export function encodedRequests(bytes: number, codec: RecordCodec<ScoreRequest>): EncodedRequests {
  const catalogue = readCatalogue(join(import.meta.dirname, '../../models/catalogue'));
  const maker = createRequestMaker(catalogue, seededRandom(SEED).stream('requests'), {
    deadlineMs: DEADLINE_MS,
  });
  const sizeOf = (candidates: number): number =>
    codec.encode(maker.make(idOf(0), shapeOf(candidates))).length;
  const perCandidate = (sizeOf(21) - sizeOf(1)) / 20;
  const candidates = Math.max(1, 1 + Math.floor((bytes - sizeOf(1)) / perCandidate));
  const requests = Array.from({ length: DISTINCT_REQUESTS }, () => maker.make(idOf(0), shapeOf(candidates)));
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

function shapeOf(candidates: number): RequestShape {
  return { candidates, historyRows: HISTORY_ROWS };
}

function idOf(n: number): string {
  return `r${String(n).padStart(ID_LENGTH - 1, '0')}`;
}

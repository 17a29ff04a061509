/** The thread that reads and checks one item table: hashing and checking hundreds of megabytes would hold up whoever serves meanwhile. */
import { parentPort, workerData } from 'node:worker_threads';
import { MillraceError } from '../../core/errors.ts';
import type { LoadAnswer, LoadOrder } from './load-messages.ts';
import { readRows } from './read-item-table.ts';

async function load({ place, manifest, bytesMax }: LoadOrder): Promise<LoadAnswer> {
  try {
    return { kind: 'read', memory: await readRows(place, manifest, bytesMax) };
  } catch (error) {
    const isRefusal = error instanceof MillraceError && error.code === 'INVALID_MODEL';
    return {
      kind: isRefusal ? 'refused' : 'failed',
      message: error instanceof Error ? error.message : String(error),
    };
  }
}

parentPort?.postMessage(await load(workerData as LoadOrder));

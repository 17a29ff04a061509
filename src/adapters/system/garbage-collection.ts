import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Node 24 has 13.6; that of Node 22 would print that it knows no such flag. */
const FLAG_SINCE_V8 = 13;

/**
 * Lets buffers count like any other memory in V8's decision when to collect all garbage. By default every 64 MB of buffers, however short their
 * lives, start a collection of the whole heap: at 30 MB of requests a second several collections a second, up to half of a stage's CPU.
 * Once per process, at its start.
 */
export function countBuffersInHeapLimit(): void {
  if (Number.parseInt(process.versions.v8, 10) < FLAG_SINCE_V8) return;
  setFlagsFromString('--external-memory-accounted-in-global-limit');
}

/**
 * Collects all garbage, as thoroughly as V8 can, and gives the pages back to the system: what start-up leaves behind (sources, syntax trees,
 * half-grown spaces) is a fifth of a service's memory, and V8 by itself comes to it only when the heap is about to grow. Takes 50 to 100 ms.
 */
export function collectStartUpGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  if (typeof collect === 'function') collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

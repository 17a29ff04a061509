/** What one table takes of a process's memory: `node load-one.ts <root> <table>` sends the growth of its resident memory in bytes, and the time. */
import { setTimeout as pause } from 'node:timers/promises';
import { ItemTableCache } from '../../src/inference/items/item-table-cache.ts';

const SETTLE_MS = 500;

const [root = '', table = ''] = process.argv.slice(2);
const cache = new ItemTableCache();
// A table of a few rows first: the code and the thread are not of the table.
await cache.load({ root, folder: 'bench/1', table: 'small' });
globalThis.gc?.();
await pause(SETTLE_MS);
const before = process.memoryUsage.rss();
const startedMs = performance.now();
const held = await cache.load({ root, folder: 'bench/1', table });
const loadMs = performance.now() - startedMs;
globalThis.gc?.();
await pause(SETTLE_MS);
process.send?.({ grownBytes: process.memoryUsage.rss() - before, loadMs, rows: held.manifest.rows });

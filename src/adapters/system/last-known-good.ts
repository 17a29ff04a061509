import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { MillraceError } from '../../core/errors.ts';
import { checked, whole } from '../../core/json-values.ts';
import { COUNT_MAX, LEASE_MS_MAX } from '../../ports/control-store.ts';
import type { KnownGood, LastKnownGood } from '../../ports/last-known-good.ts';
import type { Logger } from '../../ports/telemetry.ts';

/** Far above what two policies of the largest size, and what they were tuned from, take in base64. */
const FILE_BYTES_MAX = 1_048_576;

const count = v.pipe(whole, v.minValue(0), v.maxValue(COUNT_MAX));
const refSchema = v.object({ digest: v.string(), name: v.string(), version: count });
const storedSchema = v.array(v.object({ digest: v.string(), base64: v.pipe(v.string(), v.base64()) }));
const knownGoodSchema = v.object({
  pointer: v.object({
    epoch: count,
    term: count,
    stable: refSchema,
    canary: v.nullable(
      v.object({
        policy: refSchema,
        mode: v.picklist(['shadow', 'canary']),
        percent: v.pipe(v.number(), v.minValue(0), v.maxValue(100)),
        salt: v.string(),
        unit: v.picklist(['bucketKey', 'requestId']),
        leaseMs: v.pipe(v.number(), v.gtValue(0), v.maxValue(LEASE_MS_MAX)),
        beat: count,
      }),
    ),
  }),
  documents: storedSchema,
  // What earlier versions kept has neither.
  envelopes: v.optional(storedSchema, []),
  revokedKeys: v.optional(v.array(v.string()), []),
});

/**
 * On disk, in one folder that routers of a machine may share. A generation is one file: the checksum of its text on the first line, then the
 * text as JSON. It is written aside, flushed, and renamed into place, so that a crash at any moment leaves a whole generation: the new one or,
 * between the two renames, the one before.
 */
export function fileLastKnownGood({ folder, logger }: { folder: string; logger: Logger }): LastKnownGood {
  const pathOf = (scope: string, generation: 'current' | 'previous'): string =>
    join(folder, `${encodeURIComponent(scope)}.${generation}.json`);
  const read = async (path: string): Promise<KnownGood | undefined> => {
    try {
      return decode(await readFile(path));
    } catch (error) {
      if (!isMissing(error))
        logger.error({ path, error: String(error) }, 'a last-known-good policy cannot be read');
      return undefined;
    }
  };
  return {
    async load(scope) {
      const found = [await read(pathOf(scope, 'current')), await read(pathOf(scope, 'previous'))];
      return found.filter((good) => good !== undefined);
    },
    async save(scope, good) {
      const current = pathOf(scope, 'current');
      try {
        const kept = await read(current);
        if (kept !== undefined && kept.pointer.epoch >= good.pointer.epoch) return;
        await mkdir(folder, { recursive: true });
        const aside = join(folder, `${encodeURIComponent(scope)}.${randomUUID()}.tmp`);
        await writeFlushed(aside, encode(good));
        // One that cannot be read must not push out the one before, which can.
        if (kept !== undefined) await rename(current, pathOf(scope, 'previous')).catch(ignoreMissing);
        await rename(aside, current);
        await flushFolder(folder);
      } catch (cause) {
        throw new MillraceError('STORE_UNAVAILABLE', 'the last-known-good policy cannot be written', {
          value: current,
          advice: 'See that the state folder of the router can be written to.',
          cause,
        });
      }
    },
  };
}

function encode({ pointer, documents, envelopes, revokedKeys }: KnownGood): Buffer {
  const text = JSON.stringify({
    pointer: { ...pointer, canary: pointer.canary ?? null },
    documents: toStored(documents),
    envelopes: toStored(envelopes),
    revokedKeys,
  });
  return Buffer.from(`${checksum(text)}\n${text}\n`);
}

/** @throws MillraceError MALFORMED or TOO_LARGE */
function decode(bytes: Buffer): KnownGood {
  if (bytes.byteLength > FILE_BYTES_MAX)
    throw new MillraceError('TOO_LARGE', 'the file is larger than any that was written', {
      value: bytes.byteLength,
      allowed: `${FILE_BYTES_MAX} bytes`,
    });
  const [sum = '', text = ''] = bytes.toString('utf8').split('\n');
  if (checksum(text) !== sum)
    throw new MillraceError('MALFORMED', 'the file is not what was written: its checksum differs');
  const parsed = checked('the file', knownGoodSchema, JSON.parse(text));
  return {
    pointer: { ...parsed.pointer, canary: parsed.pointer.canary ?? undefined },
    documents: fromStored(parsed.documents),
    envelopes: fromStored(parsed.envelopes),
    revokedKeys: parsed.revokedKeys,
  };
}

function toStored(byDigest: ReadonlyMap<string, Uint8Array>): v.InferOutput<typeof storedSchema> {
  return [...byDigest].map(([digest, bytes]) => ({ digest, base64: Buffer.from(bytes).toString('base64') }));
}

function fromStored(stored: v.InferOutput<typeof storedSchema>): Map<string, Uint8Array> {
  return new Map(stored.map(({ digest, base64 }) => [digest, new Uint8Array(Buffer.from(base64, 'base64'))]));
}

function checksum(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

async function writeFlushed(path: string, bytes: Buffer): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** A rename is on disk once its folder is. */
async function flushFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

/** Another router of this machine, which shares the folder, was quicker. */
function ignoreMissing(error: unknown): void {
  if (!isMissing(error)) throw error;
}

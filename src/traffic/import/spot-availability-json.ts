import { closeSync, openSync, readSync } from 'node:fs';
import * as v from 'valibot';
import { MillraceError } from '../../core/errors.ts';
import { finite, keysOf, mapping, whole } from '../../core/json-values.ts';

/** From this moment on, ms since the beginning, so many instances could be had. */
export interface AvailabilityRow {
  readonly atMs: number;
  readonly instances: number;
}

const BYTES_MAX = 16 * 2 ** 20;
const ALLOWED =
  '{"metadata": {"gap_seconds": 600}, "data": [1, 0, …]}: instances that could be had, one number per gap';
const FILE = v.pipe(
  mapping,
  v.object({
    metadata: v.pipe(mapping, v.object({ gap_seconds: v.pipe(finite, v.minValue(0.001)) })),
    data: v.pipe(v.array(v.pipe(whole, v.minValue(0), v.maxValue(1_000_000))), v.minLength(1)),
  }),
);

/**
 * `spot-availability-json`: how many spot instances could be had over time, as the traces of the "Can't Be Late" study (NSDI 2024) are written. Rows that
 * change nothing are left out.
 * @throws MillraceError INVALID_CONFIG with the place in the document and what is allowed
 */
export function readSpotAvailability(path: string): AvailabilityRow[] {
  let content: unknown;
  try {
    content = JSON.parse(readBounded(path));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw bad(path, 'the document', error.message);
  }
  const parsed = v.safeParse(FILE, content);
  if (!parsed.success) {
    const [issue] = parsed.issues;
    throw bad(path, keysOf(issue).join('.') || 'the document', issue.received);
  }
  const { metadata, data } = parsed.output;
  return data
    .map((instances, index) => ({ atMs: index * metadata.gap_seconds * 1_000, instances }))
    .filter(({ instances }, index) => index === 0 || instances !== data[index - 1]);
}

function bad(path: string, where: string, value: string): MillraceError {
  return new MillraceError('INVALID_CONFIG', `${path} is no record of spot availability, ${where}`, {
    value,
    allowed: ALLOWED,
  });
}

/** No more is read than is allowed, whatever the file says of its size. */
function readBounded(path: string): string {
  const handle = openSync(path, 'r');
  try {
    const bytes = Buffer.allocUnsafe(BYTES_MAX + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(handle, bytes, length, bytes.length - length, null);
    if (length > BYTES_MAX)
      throw new MillraceError('INVALID_CONFIG', `${path} is too large`, {
        value: `more than ${BYTES_MAX} bytes`,
        allowed: `at most ${BYTES_MAX} bytes`,
      });
    return bytes.toString('utf8', 0, length);
  } finally {
    closeSync(handle);
  }
}

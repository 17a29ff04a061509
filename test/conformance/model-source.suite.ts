import { expect, it } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import type { ModelSource } from '../../src/ports/model-source.ts';

export interface ModelSourceCase {
  source: ModelSource;
  /** A place with these files. */
  place(files: Readonly<Record<string, Uint8Array>>): Promise<string>;
  /** A place that nobody ever made. */
  nowhere: string;
}

const GENEROUS = 1_000_000;
const never = new AbortController().signal;

export async function readAll(
  source: ModelSource,
  place: string,
  file: string,
  bytesMax = GENEROUS,
  over: AbortSignal = never,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.read(place, file, bytesMax, over)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export async function refusal(reading: Promise<unknown>): Promise<string> {
  try {
    await reading;
    return 'none';
  } catch (error) {
    if (error instanceof MillraceError) return error.code;
    throw error;
  }
}

/** What every adapter of the port does. */
export function modelSourceSuite(open: () => Promise<ModelSourceCase>): void {
  it('reads the exact bytes, of any length', async () => {
    const { source, place } = await open();
    const large = Buffer.alloc(3_000_001, 'seven bytes');
    const at = await place({ 'config.yaml': Buffer.from('format: 1\n'), 'model.onnx': large });
    expect(await readAll(source, at, 'config.yaml')).toEqual(Buffer.from('format: 1\n'));
    expect((await readAll(source, at, 'model.onnx', large.length)).equals(large)).toBe(true);
  });

  it.each(['../config.yaml', '..', '', '.hidden', 'folder/file', '/etc/passwd', 'a\\b', 'a\0b', 'a%2f..'])(
    'refuses the name %j, which could lead out',
    async (file) => {
      const { source, place } = await open();
      const at = await place({ 'config.yaml': Buffer.from('x') });
      expect(await refusal(readAll(source, at, file))).toBe('INVALID_MODEL');
    },
  );

  it('refuses a file that is larger than allowed, and gives no more of it than that', async () => {
    const { source, place } = await open();
    const at = await place({ 'model.onnx': Buffer.alloc(100_000) });
    let bytes = 0;
    const reading = (async () => {
      for await (const chunk of source.read(at, 'model.onnx', 99_999, never)) bytes += chunk.byteLength;
    })();
    expect(await refusal(reading)).toBe('INVALID_MODEL');
    expect(bytes).toBeLessThanOrEqual(99_999);
  });

  it('says that a file that is not there may come', async () => {
    const { source, place, nowhere } = await open();
    const at = await place({ 'config.yaml': Buffer.from('x') });
    expect(await refusal(readAll(source, at, 'model.onnx'))).toBe('MODEL_UNAVAILABLE');
    expect(await refusal(readAll(source, nowhere, 'model.onnx'))).toBe('MODEL_UNAVAILABLE');
  });

  it('ends when it is told to', async () => {
    const { source, place } = await open();
    const at = await place({ 'model.onnx': Buffer.alloc(8_000_000) });
    const over = new AbortController();
    const reading = (async () => {
      for await (const _ of source.read(at, 'model.onnx', 8_000_000, over.signal)) over.abort();
    })();
    expect(await refusal(reading)).toBe('MODEL_UNAVAILABLE');
  });
}

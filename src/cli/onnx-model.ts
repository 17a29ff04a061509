import { readUserFile } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
import type { OnnxGraph } from '../inference/onnx-file/graph.ts';
import { readGraph } from '../inference/onnx-file/read-graph.ts';

/** The graph of a model file that the user named. @throws MillraceError that names the file */
export function readOnnxModel(file: string): OnnxGraph {
  const bytes = readUserFile(file, 'the model');
  try {
    return readGraph(bytes);
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    throw new MillraceError(error.code, `${file}: ${error.message}`, { cause: error });
  }
}

/** Names of a flag, separated by commas. */
export function namesIn(text: string): string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** @throws MillraceError INVALID_CONFIG for a name that is no input of the model */
export function checkInputNames({ inputs }: OnnxGraph, names: readonly string[]): void {
  const known = inputs.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new MillraceError('INVALID_CONFIG', 'the model has no such input', {
    value: unknown,
    allowed: known.join(', '),
  });
}

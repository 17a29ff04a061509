import * as v from 'valibot';
import { readUserFile } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
import { finite, keysOf, mapping, recordOf } from '../core/json-values.ts';
import type { CompiledPolicy } from '../core/policy/compile.ts';
import type { SignalValue } from '../core/policy/document.ts';
import { type SignalVector, toSignalVector } from '../core/policy/explain.ts';
import { didYouMean } from '../core/policy/nearest.ts';

const LINE = v.pipe(
  mapping,
  v.object({
    signals: recordOf(v.string(), v.union([finite, v.boolean(), v.string(), v.null()])),
    context: v.optional(recordOf(v.string(), v.string())),
  }),
);
const ALLOWED =
  'one JSON object per line, with "signals" (numbers, true and false by name) and, where there is one, "context" (texts by name)';

/**
 * Recorded requests as a policy sees them.
 *
 * @param policies both are compiled for one vector of signals
 * @throws MillraceError INVALID_REQUEST naming the line; also where no request has any signal that the policies declare
 */
export function readCorpus(file: string, before: CompiledPolicy, after: CompiledPolicy): SignalVector[] {
  const lines = readUserFile(file).toString('utf8').split('\n');
  const corpus: SignalVector[] = [];
  const seen = new Set<string>();
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '') continue;
    const values = readLine(line, `${file}, line ${index + 1}`);
    for (const [name] of values) seen.add(name);
    corpus.push(toSignalVector(before, values));
  }
  const declared = [...new Set([...before.document.signals.keys(), ...after.document.signals.keys()])];
  checkNames(file, corpus.length, seen, declared);
  return corpus;
}

function readLine(line: string, place: string): Map<string, SignalValue | null> {
  let content: unknown;
  try {
    content = JSON.parse(line);
  } catch (error) {
    throw new MillraceError('INVALID_REQUEST', `${place}: it is not JSON`, {
      value: line,
      allowed: ALLOWED,
      cause: error,
    });
  }
  const parsed = v.safeParse(LINE, content);
  if (parsed.success)
    return new Map([
      ...Object.entries(parsed.output.signals),
      ...Object.entries(parsed.output.context ?? {}),
    ]);
  const path = keysOf(parsed.issues[0]).join('.');
  throw new MillraceError(
    'INVALID_REQUEST',
    `${place}: ${path === '' ? 'it is no request' : `${path} is not allowed`}`,
    {
      value: line,
      allowed: ALLOWED,
    },
  );
}

/** Requests that share nothing with the policies would all go the same way, and look as if nothing changed. */
function checkNames(
  file: string,
  requests: number,
  seen: ReadonlySet<string>,
  declared: readonly string[],
): void {
  if (requests === 0)
    throw new MillraceError('INVALID_REQUEST', `${file} holds no request`, { allowed: ALLOWED });
  if (declared.length === 0 || declared.some((name) => seen.has(name))) return;
  const [first = ''] = seen;
  throw new MillraceError('INVALID_REQUEST', `${file}: no request has a signal that the policies declare`, {
    value: [...seen].join(', '),
    allowed: declared.join(', '),
    ...didYouMean(first, declared),
  });
}

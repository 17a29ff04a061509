import { Composer, CST, isMap, isScalar, isSeq, Lexer, Parser, parseDocument, type Scalar } from 'yaml';
import { FORBIDDEN_KEYS } from '../own.ts';
import {
  DocumentError,
  type DocumentErrorCode,
  type PolicyProblem,
  type Position,
  PROBLEMS_MAX,
  ProblemList,
} from './problem.ts';

/**
 * The text of a document as a bounded tree in which every node knows where it stands. YAML 1.2 (core schema),
 * of which JSON is a subset, without what makes YAML dangerous: no anchors, aliases, tags, directives or second documents.
 */
export type SourceNode = SourceMap | SourceList | SourceScalar;

interface Located {
  /** Such as `tree[2].to.kernel`. */
  readonly path: string;
  readonly position: Position;
}

export interface SourceMap extends Located {
  readonly kind: 'map';
  readonly entries: ReadonlyMap<string, SourceNode>;
}

export interface SourceList extends Located {
  readonly kind: 'list';
  readonly items: readonly SourceNode[];
}

export interface SourceScalar extends Located {
  readonly kind: 'scalar';
  readonly value: string | number | boolean | null;
  /** As it was written, for scalars that are not strings; the value itself for those that are. */
  readonly text: string;
  /** The place of a character of the text, where the text stands on one line as it is; else of the scalar. */
  positionOf(offset: number): Position;
}

export const DOCUMENT_LIMITS = { bytes: 65_536, nodes: 4_096, depth: 32 } as const;

/**
 * @throws DocumentError with `code`: over the limits, not UTF-8, not YAML, or with forbidden constructs or keys.
 */
export function readSource(input: string | Uint8Array, code: DocumentErrorCode): SourceNode {
  const text = decode(input, code);
  const lines = new LineIndex(text);
  const refused = findForbidden(text, lines);
  if (refused !== undefined) throw new DocumentError(code, [refused]);
  const documents = [
    ...new Composer({ uniqueKeys: false, prettyErrors: false, stringKeys: true }).compose(
      new Parser().parse(text),
    ),
  ];
  const [document, second] = documents;
  const one = { allowed: 'one' };
  const problems = [
    ...(second === undefined
      ? []
      : [problem('', lines.at(second.range[0]), 'more than one document in the text', one)]),
    ...documents
      .flatMap((each) => [...each.errors, ...each.warnings])
      .slice(0, PROBLEMS_MAX - 1)
      .map((error) => syntaxProblem(error.message, error.pos[0], text, lines)),
  ];
  if (document === undefined || problems.length > 0) {
    throw new DocumentError(
      code,
      problems.length > 0 ? problems : [problem('', undefined, 'the document is empty')],
    );
  }
  const walk = new TreeWalk(text, lines, code);
  const root = walk.convert(document.contents, '', 0);
  if (walk.problems.found.length > 0) throw new DocumentError(code, walk.problems.found);
  return root;
}

/**
 * The same text with some top-level fields set (or, where undefined, removed); comments and order are kept. The text must be one
 * that `readSource` accepts.
 */
export function amendSource(
  text: string,
  fields: ReadonlyMap<string, string | number | Record<string, number> | undefined>,
): string {
  const document = parseDocument(text);
  for (const [name, value] of fields) {
    if (value === undefined) document.delete(name);
    // A scalar that is set in place keeps its comment.
    else document.set(name, typeof value === 'object' ? document.createNode(value) : value);
  }
  return document.toString({ lineWidth: 0 });
}

function decode(input: string | Uint8Array, code: DocumentErrorCode): string {
  const size = typeof input === 'string' ? byteLength(input) : input.byteLength;
  if (size > DOCUMENT_LIMITS.bytes) {
    throw new DocumentError(code, [
      problem('', undefined, 'the document is too large', {
        value: `${size} bytes`,
        allowed: `at most ${DOCUMENT_LIMITS.bytes} bytes`,
      }),
    ]);
  }
  if (typeof input === 'string') return input;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(input);
  } catch (cause) {
    throw new DocumentError(code, [problem('', undefined, 'the document is not UTF-8', { value: input })], {
      cause,
    });
  }
}

/** A string that is too long as it is need not be encoded to know that. */
function byteLength(text: string): number {
  return text.length > DOCUMENT_LIMITS.bytes ? text.length : new TextEncoder().encode(text).byteLength;
}

const REFUSED_TOKENS: ReadonlyMap<string, string> = new Map([
  ['anchor', 'anchors are not allowed'],
  ['alias', 'aliases are not allowed'],
  ['tag', 'tags are not allowed'],
  ['directive-line', 'directives are not allowed'],
]);

const OPENS_A_BLOCK: ReadonlySet<string> = new Set(['seq-item-ind', 'explicit-key-ind']);
const ENDS_A_ROW: ReadonlySet<string> = new Set([
  'comma',
  'flow-seq-start',
  'flow-map-start',
  'flow-seq-end',
  'flow-map-end',
]);

/**
 * One pass over YAML's tokens, before anything is built: bounds the work of the parser (which is recursive, and slow on deep
 * nesting), and refuses what a policy has no use for.
 */
function findForbidden(text: string, lines: LineIndex): PolicyProblem | undefined {
  let offset = 0;
  let flowDepth = 0;
  /** Keys and items in a row, each within the one before: the parser goes down by each, and its stack is not without end. */
  let inARow = 0;
  let tokens = 0;
  let nodes = 0;
  let atScalar = false;
  for (const token of new Lexer().lex(text)) {
    if (atScalar) {
      atScalar = false;
      offset += token.length;
      continue;
    }
    const type = CST.tokenType(token);
    const refused = REFUSED_TOKENS.get(type ?? '');
    if (refused !== undefined) {
      const advice =
        type === 'tag' || type === 'alias' ? { advice: 'Quote a text that begins with this character.' } : {};
      return problem('', lines.at(offset), refused, { value: token, ...advice });
    }
    atScalar = type === 'scalar';
    if (type === 'newline') inARow = flowDepth === 0 ? 0 : inARow;
    else if (type === 'flow-seq-end' || type === 'flow-map-end') flowDepth -= 1;
    else if (type !== 'space' && type !== 'comment') tokens += 1;
    if (ENDS_A_ROW.has(type ?? '')) inARow = 0;
    // One bracket too many makes the parser's error handling quadratic.
    if (flowDepth < 0)
      return problem('', lines.at(offset), 'a bracket is closed that was never opened', { value: token });
    if (type === 'map-value-ind' || (flowDepth === 0 && OPENS_A_BLOCK.has(type ?? ''))) inARow += 1;
    if (type === 'flow-seq-start' || type === 'flow-map-start') flowDepth += 1;
    // Behind each of these is a node, and be it an empty one.
    if (type === 'seq-item-ind' || type === 'map-value-ind') nodes += 1;
    // A node costs at most six tokens: key, its indicator, value, comma, and a bracket on both sides.
    if (nodes > DOCUMENT_LIMITS.nodes || tokens > 6 * DOCUMENT_LIMITS.nodes)
      return tooManyNodes('', lines.at(offset));
    if (flowDepth > DOCUMENT_LIMITS.depth || inARow > DOCUMENT_LIMITS.depth) {
      return tooDeep('', lines.at(offset));
    }
    if (type !== 'scalar' && type !== 'doc-mode' && type !== 'flow-error-end') offset += token.length;
  }
  return undefined;
}

function syntaxProblem(message: string, offset: number, text: string, lines: LineIndex): PolicyProblem {
  const position = lines.at(offset);
  const line = lines.lineOf(text, position.line);
  // `min: 1` inside an unquoted condition reads as a nested mapping: by far the likeliest slip.
  const advice = /\btune\s*\(/.test(line)
    ? { advice: "Put the whole condition in single quotes: '… tune(…) …'." }
    : {};
  return problem('', position, `not YAML: ${message}`, { value: line.trim(), ...advice });
}

class TreeWalk {
  readonly problems: ProblemList;
  readonly #text: string;
  readonly #lines: LineIndex;
  readonly #code: DocumentErrorCode;
  #nodes = 0;

  constructor(text: string, lines: LineIndex, code: DocumentErrorCode) {
    this.problems = new ProblemList(code);
    this.#text = text;
    this.#lines = lines;
    this.#code = code;
  }

  convert(node: unknown, path: string, depth: number): SourceNode {
    const range = (node as { range?: [number, number, number] | null } | null)?.range;
    const position = this.#lines.at(range?.[0] ?? 0);
    this.#nodes += 1;
    if (this.#nodes > DOCUMENT_LIMITS.nodes)
      throw new DocumentError(this.#code, [tooManyNodes(path, position)]);
    if (depth >= DOCUMENT_LIMITS.depth) throw new DocumentError(this.#code, [tooDeep(path, position)]);
    if (isSeq(node)) {
      const items = node.items.map((item, index) => this.convert(item, `${path}[${index}]`, depth + 1));
      return { kind: 'list', path, position, items };
    }
    if (isMap(node)) {
      const entries = new Map<string, SourceNode>();
      for (const pair of node.items) this.#addEntry(entries, pair, path, depth);
      return { kind: 'map', path, position, entries };
    }
    return isScalar(node)
      ? this.#scalar(node, path, position)
      : { kind: 'scalar', path, position, value: null, text: '', positionOf: () => position };
  }

  #addEntry(
    entries: Map<string, SourceNode>,
    pair: { key: unknown; value: unknown },
    path: string,
    depth: number,
  ): void {
    const key = isScalar(pair.key) ? String(pair.key.value) : '';
    const position = this.#lines.at(isScalar(pair.key) ? (pair.key.range?.[0] ?? 0) : 0);
    const here = joinPath(path, key);
    if (FORBIDDEN_KEYS.has(key)) {
      this.problems.add(problem(here, position, 'a key that is never allowed', { value: key }));
    } else if (entries.has(key)) {
      this.problems.add(problem(here, position, 'the same key twice', { value: key }));
    } else {
      entries.set(key, this.convert(pair.value, here, depth + 1));
    }
  }

  #scalar(node: Scalar, path: string, position: Position): SourceScalar {
    const value = node.value as SourceScalar['value'];
    const text = typeof value === 'string' ? value : (node.source ?? '');
    const [start = 0, end = 0] = node.range ?? [];
    const written = this.#text.slice(start, end);
    const from = written === text ? start : written.slice(1, -1) === text ? start + 1 : undefined;
    const lines = this.#lines;
    const positionOf = (offset: number) => (from === undefined ? position : lines.at(from + offset));
    return { kind: 'scalar', path, position, value, text, positionOf };
  }
}

/** Character offsets to lines and columns. */
class LineIndex {
  readonly #starts: number[] = [0];

  constructor(text: string) {
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) this.#starts.push(at + 1);
  }

  at(offset: number): Position {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (this.#starts[low] ?? 0) + 1 };
  }

  lineOf(text: string, line: number): string {
    return text.slice(this.#starts[line - 1], this.#starts[line] ?? text.length);
  }
}

function joinPath(path: string, key: string): string {
  if (!/^[\w-]{1,64}$/.test(key)) return `${path}[${JSON.stringify(key.slice(0, 64))}]`;
  return path === '' ? key : `${path}.${key}`;
}

function tooManyNodes(path: string, position: Position): PolicyProblem {
  return problem(path, position, 'the document has too many nodes', {
    allowed: `at most ${DOCUMENT_LIMITS.nodes}`,
  });
}

function tooDeep(path: string, position: Position): PolicyProblem {
  return problem(path, position, 'the document is nested too deeply', {
    allowed: `at most ${DOCUMENT_LIMITS.depth} levels`,
  });
}

function problem(
  path: string,
  position: Position | undefined,
  what: string,
  detail: { value?: unknown; allowed?: string; advice?: string } = {},
): PolicyProblem {
  return { severity: 'error', path, position, what, ...detail };
}

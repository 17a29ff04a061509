import { listNames } from '../errors.ts';
import { didYouMean } from './nearest.ts';
import { type DocumentErrorCode, type PolicyProblem, ProblemList } from './problem.ts';
import type { SourceNode } from './source.ts';

/** Reads typed values off a source tree; what is wrong is collected, and read as undefined. Throws DocumentError where that is too much. */
export class DocumentReader {
  readonly #problems: ProblemList;

  constructor(code: DocumentErrorCode) {
    this.#problems = new ProblemList(code);
  }

  get problems(): readonly PolicyProblem[] {
    return this.#problems.found;
  }

  add(problem: PolicyProblem): void {
    this.#problems.add(problem);
  }

  report(
    node: SourceNode,
    what: string,
    detail: { value?: unknown; allowed?: string; advice?: string } = {},
  ): undefined {
    this.add({ severity: 'error', path: node.path, position: node.position, what, ...detail });
    return undefined;
  }

  /** A map with a fixed set of fields. Unknown ones are reported with the nearest known one, required ones where they lack. */
  fields<Name extends string>(
    node: SourceNode,
    names: { readonly [N in Name]: 'required' | 'optional' },
  ): { readonly [N in Name]: SourceNode | undefined } | undefined {
    const entries = this.map(node);
    if (entries === undefined) return undefined;
    const known = Object.keys(names) as Name[];
    const allowed = known.join(', ');
    for (const [name, value] of entries) {
      if (!known.some((each) => each === name)) {
        this.report(value, 'an unknown field', { value: name, allowed, ...didYouMean(name, known) });
      }
    }
    for (const name of known) {
      if (names[name] === 'required' && !entries.has(name))
        this.report(node, `the field \`${name}\` is missing`);
    }
    return Object.fromEntries(known.map((name) => [name, entries.get(name)])) as {
      [N in Name]: SourceNode | undefined;
    };
  }

  map(node: SourceNode): ReadonlyMap<string, SourceNode> | undefined {
    return node.kind === 'map' ? node.entries : this.#mistyped(node, 'a map');
  }

  list(node: SourceNode): readonly SourceNode[] | undefined {
    return node.kind === 'list' ? node.items : this.#mistyped(node, 'a list');
  }

  /** A text that a pattern allows. */
  text(node: SourceNode, pattern: RegExp, allowed: string): string | undefined {
    if (node.kind !== 'scalar' || typeof node.value !== 'string')
      return this.#mistyped(node, `a text: ${allowed}`);
    return pattern.test(node.value)
      ? node.value
      : this.report(node, 'not what is expected here', { value: node.value, allowed });
  }

  oneOf<Name extends string>(node: SourceNode, names: readonly Name[]): Name | undefined {
    const value = node.kind === 'scalar' ? node.value : undefined;
    const found = names.find((name) => name === value);
    if (found !== undefined) return found;
    if (typeof value !== 'string') return this.#mistyped(node, listNames(names));
    return this.report(node, 'not one of the names allowed here', {
      value,
      allowed: listNames(names),
      ...didYouMean(value, names),
    });
  }

  /** A finite number in min … max. */
  number(
    node: SourceNode,
    min: number,
    max: number,
    kind: 'number' | 'whole number' = 'number',
  ): number | undefined {
    const value = node.kind === 'scalar' ? node.value : undefined;
    const allowed = `a ${kind}, ${min} … ${max}`;
    if (typeof value !== 'number') return this.#mistyped(node, allowed);
    const right = value >= min && value <= max && (kind === 'number' || Number.isSafeInteger(value));
    return right ? value : this.report(node, 'a number out of bounds', { value, allowed });
  }

  flag(node: SourceNode): boolean | undefined {
    const value = node.kind === 'scalar' ? node.value : undefined;
    return typeof value === 'boolean' ? value : this.#mistyped(node, 'true or false');
  }

  /** A duration such as `15m`, in milliseconds. */
  durationMs(node: SourceNode): number | undefined {
    const allowed = 'a duration such as 500ms, 30s, 15m, 2h, 1d, at most 30d';
    const text = this.text(node, /^\d{1,9}(ms|s|m|h|d)$/, allowed);
    if (text === undefined) return undefined;
    const unit = text.replace(/\d+/, '');
    const durationMs = Number.parseInt(text, 10) * (MS_PER_UNIT.get(unit) ?? Number.NaN);
    return durationMs <= DURATION_MS_MAX
      ? durationMs
      : this.report(node, 'a duration too long', { value: text, allowed });
  }

  #mistyped(node: SourceNode, wanted: string): undefined {
    const value = node.kind === 'scalar' ? node.value : `a ${node.kind}`;
    return this.report(node, 'something else is expected here', { value, allowed: wanted });
  }
}

const MS_PER_UNIT: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);
const DURATION_MS_MAX = 30 * 86_400_000;

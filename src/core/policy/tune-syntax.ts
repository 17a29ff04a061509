import type { ConditionProblem } from './condition.ts';
import type { Tunable, TuningStep } from './document.ts';

/**
 * `tune("name", default, min: a, max: b, step: 10%)` is ours, not CEL's. It is read here, and stands in the text
 * for CEL as `tune()` and spaces, so that every other character keeps its place.
 */
export interface ExtractedTunables {
  readonly text: string;
  /** By the offset of their `tune`. */
  readonly tunables: ReadonlyMap<number, Tunable>;
  readonly problems: readonly ConditionProblem[];
}

/** What must not be searched for `tune(`: strings and comments; then `tune(` itself. */
const TOKEN = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\/\/[^\n]*|(?<![\w.])tune\s*\(/g;
const SPACE = /\s*/y;
const NAME = /"([^"\\]{0,64})"|'([^'\\]{0,64})'/y;
const NUMBER = /-?\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?/y;
const ARGUMENT = /(min|max|step)\s*:/y;
/** It becomes a key of `tuned`. */
const TUNABLE_NAME = /^(?!(?:constructor|prototype)$)[A-Za-z][A-Za-z0-9._-]*$/;
const FORM = 'tune("name", default, min: number, max: number, step: number or percent)';

export function extractTunables(text: string): ExtractedTunables {
  const tunables = new Map<number, Tunable>();
  const problems: ConditionProblem[] = [];
  let rest = text;
  for (const token of text.matchAll(TOKEN)) {
    if (!token[0].startsWith('tune')) continue;
    const reader = new TuneReader(text, token.index + token[0].length);
    const tunable = reader.read();
    if (tunable === undefined) {
      problems.push({
        offset: reader.at,
        what: `this is not a tunable constant: ${reader.failure}`,
        allowed: FORM,
      });
      continue;
    }
    tunables.set(token.index, tunable);
    const standIn = 'tune()'.padEnd(reader.at - token.index);
    rest = rest.slice(0, token.index) + standIn + rest.slice(reader.at);
  }
  return { text: rest, tunables, problems };
}

class TuneReader {
  at: number;
  failure = '';
  readonly #text: string;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  read(): Tunable | undefined {
    const name = this.#match(NAME);
    const text = name?.[1] ?? name?.[2] ?? '';
    if (!TUNABLE_NAME.test(text))
      return this.#fail(
        'its name is a quoted text that begins with a letter, and not constructor or prototype',
      );
    if (!this.#skip(',')) return this.#fail('a comma is missing');
    const initial = this.#number();
    if (initial === undefined) return this.#fail('its default is a number');
    const named = this.#namedArguments();
    return named === undefined ? undefined : this.#assemble(text, initial, named);
  }

  #namedArguments(): Map<string, TuningStep> | undefined {
    const found = new Map<string, TuningStep>();
    while (this.#skip(',')) {
      const name = this.#match(ARGUMENT)?.[1];
      const size = name === undefined ? undefined : this.#number();
      if (name === undefined || size === undefined)
        return this.#fail('min, max and step are named, and numbers');
      if (found.has(name)) return this.#fail(`${name} is given twice`);
      found.set(name, { by: this.#skip('%') ? 'percent' : 'amount', size });
    }
    return this.#skip(')') ? found : this.#fail('a parenthesis is missing');
  }

  #assemble(name: string, initial: number, named: ReadonlyMap<string, TuningStep>): Tunable | undefined {
    const min = named.get('min');
    const max = named.get('max');
    const step = named.get('step');
    if (min === undefined || max === undefined || step === undefined)
      return this.#fail('min, max and step are required');
    if (min.by === 'percent' || max.by === 'percent') return this.#fail('only the step may be a percentage');
    if (!(min.size <= initial && initial <= max.size))
      return this.#fail('its default lies outside min … max');
    if (!(step.size > 0)) return this.#fail('its step is not above zero');
    if (step.by === 'percent' && (step.size > 100 || min.size <= 0)) {
      return this.#fail('a step in percent is at most 100 %, and needs a min above zero');
    }
    return { name, default: initial, min: min.size, max: max.size, step };
  }

  #number(): number | undefined {
    const text = this.#match(NUMBER)?.[0];
    const value = text === undefined ? Number.NaN : Number(text);
    return Number.isFinite(value) ? value : undefined;
  }

  #skip(character: string): boolean {
    this.#match(SPACE);
    if (this.#text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    if (pattern !== SPACE) this.#match(SPACE);
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text);
    if (found === null) return undefined;
    this.at += found[0].length;
    return found;
  }

  #fail(why: string): undefined {
    this.failure = why;
    return undefined;
  }
}

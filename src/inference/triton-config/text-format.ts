import { MillraceError } from '../../core/errors.ts';

/** A value of protobuf's text format: a message, a text in quotes, or a number or name as it stands. */
export type TextValue =
  | { readonly kind: 'message'; readonly fields: TextMessage }
  | { readonly kind: 'text' | 'word'; readonly text: string };

/** By field name, in the order of the file: a field may be given once or many times, or as a list. */
export type TextMessage = ReadonlyMap<string, readonly TextValue[]>;

export const TEXT_BYTES_MAX = 256 * 1024;
const NESTING_MAX = 32;
const VALUES_MAX = 10_000;

interface Token {
  readonly kind: 'text' | 'word' | 'mark' | 'end';
  readonly text: string;
  readonly at: number;
}

const SPACE = /(?:\s+|#[^\n]*)*/y;
const WORD = /[-+]?[A-Za-z0-9_.]+(?:(?<=[eE])[-+]\d+)?/y;
const TEXT = /"((?:[^"\\\n]|\\[^\n])*)"|'((?:[^'\\\n]|\\[^\n])*)'/y;
const MARKS = '{}[]<>:,;';
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' };

/**
 * Reads protobuf's text format (https://protobuf.dev/reference/protobuf/textformat-spec/) as far as configurations of Triton use it: messages in
 * `{}` or `<>`, lists in `[]`, texts, numbers, names, `#` comments. Not read: names of extensions in brackets, and escapes by number.
 *
 * @throws MillraceError INVALID_MODEL with the line, for anything else and for what is larger, deeper or longer than bounds allow
 */
export function readTextFormat(text: string): TextMessage {
  return new Reader(text).read();
}

class Reader {
  readonly #text: string;
  #next: Token;
  #end = 0;
  #values = 0;

  constructor(text: string) {
    this.#text = text;
    if (Buffer.byteLength(text) > TEXT_BYTES_MAX)
      throw this.#problem(`is larger than ${TEXT_BYTES_MAX} bytes`, 0);
    this.#next = this.#token();
  }

  read(): TextMessage {
    return this.#message('end', 0);
  }

  /** Fields up to the mark that closes them, which is taken too. */
  #message(closing: string, nesting: number): TextMessage {
    if (nesting > NESTING_MAX) throw this.#problem(`nests deeper than ${NESTING_MAX}`, this.#next.at);
    const fields = new Map<string, TextValue[]>();
    while (!this.#isAt(closing)) {
      const name = this.#take();
      if (name.kind !== 'word' || !/^[A-Za-z_]\w*$/.test(name.text))
        throw this.#problem(`has ${JSON.stringify(name.text)} where the name of a field should be`, name.at);
      const hasColon = this.#skip(':');
      const values = fields.get(name.text) ?? [];
      values.push(...this.#list(hasColon, nesting));
      fields.set(name.text, values);
      if (!this.#skip(',')) this.#skip(';');
    }
    this.#take();
    return fields;
  }

  #list(hasColon: boolean, nesting: number): TextValue[] {
    if (!this.#skip('[')) return [this.#value(hasColon, nesting)];
    const values: TextValue[] = [];
    if (this.#skip(']')) return values;
    do values.push(this.#value(hasColon, nesting));
    while (this.#skip(','));
    if (!this.#skip(']')) throw this.#problem('has no ] where a list should end', this.#next.at);
    return values;
  }

  #value(hasColon: boolean, nesting: number): TextValue {
    this.#values += 1;
    if (this.#values > VALUES_MAX) throw this.#problem(`has more than ${VALUES_MAX} values`, this.#next.at);
    const token = this.#take();
    if (token.kind === 'mark' && (token.text === '{' || token.text === '<'))
      return { kind: 'message', fields: this.#message(token.text === '{' ? '}' : '>', nesting + 1) };
    if (!hasColon) throw this.#problem('has a value without a colon before it', token.at);
    if (token.kind === 'word') return { kind: 'word', text: token.text };
    if (token.kind === 'text') return { kind: 'text', text: this.#joined(token) };
    throw this.#problem(`has ${JSON.stringify(token.text)} where a value should be`, token.at);
  }

  /** Texts one behind another are one. */
  #joined(first: Token): string {
    let text = first.text;
    while (this.#next.kind === 'text') text += this.#take().text;
    return text;
  }

  #isAt(mark: string): boolean {
    if (mark === 'end') return this.#next.kind === 'end';
    if (this.#next.kind === 'end') throw this.#problem(`ends where a ${mark} is missing`, this.#next.at);
    return this.#next.kind === 'mark' && this.#next.text === mark;
  }

  #skip(mark: string): boolean {
    if (this.#next.kind !== 'mark' || this.#next.text !== mark) return false;
    this.#take();
    return true;
  }

  #take(): Token {
    const token = this.#next;
    if (token.kind !== 'end') this.#next = this.#token();
    return token;
  }

  #token(): Token {
    SPACE.lastIndex = this.#end;
    SPACE.exec(this.#text);
    const at = SPACE.lastIndex;
    if (at >= this.#text.length) return { kind: 'end', text: '', at };
    const mark = this.#text[at] ?? '';
    if (MARKS.includes(mark)) {
      this.#end = at + 1;
      return { kind: 'mark', text: mark, at };
    }
    const quoted = this.#match(TEXT, at);
    if (quoted !== undefined)
      return { kind: 'text', text: this.#unescaped(quoted[1] ?? quoted[2] ?? '', at), at };
    const word = this.#match(WORD, at);
    if (word === undefined) throw this.#problem('cannot be read', at);
    return { kind: 'word', text: word[0], at };
  }

  #match(pattern: RegExp, at: number): RegExpExecArray | undefined {
    pattern.lastIndex = at;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#end = pattern.lastIndex;
    return match;
  }

  #unescaped(text: string, at: number): string {
    return text.replaceAll(/\\(.)/gu, (_, escaped: string) => {
      if (/[0-9xXuUabfv]/.test(escaped))
        throw this.#problem(`has the escape \\${escaped}, which is not read`, at);
      return ESCAPES[escaped] ?? escaped;
    });
  }

  #problem(what: string, at: number): MillraceError {
    const line = this.#text.slice(0, at).split('\n').length;
    return new MillraceError('INVALID_MODEL', `line ${line} ${what}`, {
      value: this.#text.slice(at, at + 40),
      allowed: "protobuf's text format, as Triton writes config.pbtxt",
    });
  }
}

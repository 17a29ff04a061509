import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import {
  readTextFormat,
  TEXT_BYTES_MAX,
  type TextMessage,
  type TextValue,
} from '../../../../src/inference/triton-config/text-format.ts';

/** As plain data: texts in quotes, words as they stand. */
type Plain = { [field: string]: (Plain | string)[] };

function plain(message: TextMessage): Plain {
  const value = (one: TextValue): Plain | string => {
    if (one.kind === 'message') return plain(one.fields);
    return one.kind === 'text' ? JSON.stringify(one.text) : one.text;
  };
  return Object.fromEntries([...message].map(([name, values]) => [name, values.map(value)]));
}

/** Written as Triton's documentation does, with choices of an author in between. */
function written(message: Plain, style: () => number): string {
  const space = (): string => [' ', '\n', ' # a comment: { "\n', '\t'][style() % 4] ?? ' ';
  const value = (one: Plain | string): string => {
    if (typeof one === 'string') return one;
    const [open, close] = style() % 2 === 0 ? ['{', '}'] : ['<', '>'];
    return `${open}${space()}${written(one, style)}${space()}${close}`;
  };
  return Object.entries(message)
    .map(([name, values]) => {
      const isList = values.length !== 1 || style() % 2 === 0;
      const colon = values.some((one) => typeof one === 'string') || style() % 2 === 0 ? ':' : '';
      const body = isList
        ? `[${space()}${values.map(value).join(`${space()},${space()}`)}${space()}]`
        : value(values[0] ?? '');
      return `${name}${space()}${colon}${space()}${body}${[',', ';', ''][style() % 3]}`;
    })
    .join('\n');
}

const name = fc.stringMatching(/^[a-z_][a-z0-9_]{0,8}$/).filter((text) => text !== '__proto__');
const word = fc.oneof(
  fc.integer().map(String),
  fc.constantFrom('TYPE_FP32', 'true', '-1', '1.5e-3', 'KIND_CPU', '.5'),
);
const text = fc.stringMatching(/^[\x20-\x7eäß]{0,12}$/).map((one) => JSON.stringify(one));
const message = fc.letrec<{ message: Plain; value: Plain | string }>((tie) => ({
  message: fc.dictionary(name, fc.array(tie('value'), { maxLength: 3 }), {
    maxKeys: 4,
    noNullPrototype: true,
  }),
  value: fc.oneof({ maxDepth: 4, withCrossShrink: true }, word, text, tie('message')),
})).message;

describe('reading protobuf’s text format', () => {
  it('reads what was written, however it was written', () => {
    fc.assert(
      fc.property(message, fc.array(fc.nat(), { minLength: 1 }), (want, choices) => {
        let at = 0;
        const style = (): number => choices[at++ % choices.length] ?? 0;
        expect(plain(readTextFormat(written(want, style)))).toEqual(want);
      }),
    );
  });

  it('refuses what it cannot read with a MillraceError, whatever it is', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '<',
      '>',
      ':',
      ',',
      ';',
      '"',
      "'",
      '\\',
      '#',
      '\n',
      'a',
      '1',
      ' ',
      '☃',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(pieces).map((each) => each.join('')),
        ),
        (any) => {
          try {
            readTextFormat(any);
          } catch (error) {
            expect(error).toBeInstanceOf(MillraceError);
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it.each<[string, string, Plain]>([
    ['fields that are given again', 'a: 1 a: 2', { a: ['1', '2'] }],
    ['texts one behind another', `a: "x" 'y'`, { a: ['"xy"'] }],
    ['escapes', String.raw`a: "x\"\\\n"`, { a: [JSON.stringify('x"\\\n')] }],
    ['messages without a colon', 'a { b < > }', { a: [{ b: [{}] }] }],
    ['a list of nothing', 'a: [ ]', { a: [] }],
    ['nothing', ' # only a comment', {}],
  ])('reads %s', (_, given, want) => {
    expect(plain(readTextFormat(given))).toEqual(want);
  });

  it.each<[string, string, RegExp]>([
    ['a value without a colon', 'a\nb 1', /^line 2 /],
    ['a message that does not end', 'a {\n b: 1', /line 2 ends where a } is missing/],
    ['a message that ends otherwise', 'a { b: 1 >', /where the name of a field should be/],
    ['a text that does not end', 'a: "x', /cannot be read/],
    ['a list that does not end', 'a: [1, 2', /no ] where a list should end/],
    ['an escape by number', String.raw`a: "\101"`, /escape \\1, which is not read/],
    ['an extension', '[a.b]: 1', /where the name of a field should be/],
    ['what nests too deeply', `${'a {'.repeat(50)}${'}'.repeat(50)}`, /nests deeper than 32/],
    ['too many values', `a: [${'1,'.repeat(10_001)}1]`, /more than 10000 values/],
    ['what is too large', ' '.repeat(TEXT_BYTES_MAX + 1), /larger than 262144 bytes/],
  ])('refuses %s', (_, given, reason) => {
    expect(() => readTextFormat(given)).toThrow(reason);
  });

  it('reads the largest text of any kind in time', () => {
    for (const piece of [' ', '# x\n', 'a', '"', "'", '\\"', '{'])
      try {
        readTextFormat(piece.repeat(TEXT_BYTES_MAX / 4));
      } catch (error) {
        expect(error).toBeInstanceOf(MillraceError);
      }
  });
});

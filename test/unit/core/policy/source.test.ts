import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { amendSource, readSource, type SourceNode } from '../../../../src/core/policy/source.ts';

function plain(node: SourceNode): unknown {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'list') return node.items.map(plain);
  return Object.fromEntries([...node.entries].map(([key, value]) => [key, plain(value)]));
}

function read(text: string | Uint8Array): unknown {
  return plain(readSource(text, 'INVALID_POLICY'));
}

const repeat = (count: number, part: (index: number) => string, separator = '\n') =>
  Array.from({ length: count }, (_, i) => part(i)).join(separator);

describe('readSource', () => {
  it.each([
    ['block YAML', 'a: 1\nb:\n  - x\n  - {c: true}\n', { a: 1, b: ['x', { c: true }] }],
    ['JSON with tabs', '{\n\t"a": 1,\n\t"b": [\n\t\tnull\n\t]\n}', { a: 1, b: [null] }],
    ['CRLF', 'a: b\r\nc: d\r\n', { a: 'b', c: 'd' }],
    [
      'YAML 1.2 scalars',
      '[.inf, 0x10, yes, 1_0, ~, "a\\nb"]',
      [Number.POSITIVE_INFINITY, 16, 'yes', '1_0', null, 'a\nb'],
    ],
    ['a key that looks like a number', '1: x', { 1: 'x' }],
    ['a merge key, which means nothing', '<<: {a: 1}', { '<<': { a: 1 } }],
    [
      'a map at the limit of nodes',
      repeat(4_095, (i) => `k${i}: 1`),
      Object.fromEntries(Array.from({ length: 4_095 }, (_, i) => [`k${i}`, 1])),
    ],
    [
      'many keys in one line',
      `{${repeat(2_000, (i) => `k${i}: [1]`, ', ')}}`,
      Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`k${i}`, [1]])),
    ],
    [
      'many keys in a flow of lines',
      `{${repeat(2_000, (i) => `k${i}: 1`, ',\n')}}`,
      Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`k${i}`, 1])),
    ],
    ['a list at the limit of nodes', repeat(4_095, () => '-'), Array.from({ length: 4_095 }, () => null)],
  ])('reads %s', (_, text, expected) => {
    expect(read(text)).toEqual(expected);
  });

  it.each([
    ['nothing', '', 'the document is empty'],
    ['only a comment', '# x', 'the document is empty'],
    ['broken syntax', 'a: [1', 'not YAML'],
    ['two documents', 'a: 1\n---\nb: 2', 'line 2, column 1: more than one document'],
    ['an anchor', 'a: &x 1', 'line 1, column 4: anchors are not allowed (got "&x")'],
    ['an alias', 'a: *x', 'line 1, column 4: aliases are not allowed'],
    ['a tag', 'a: !f && g', 'line 1, column 4: tags are not allowed (got "!f"). Quote'],
    ['a directive', '%YAML 1.1\n---\na: yes', 'directives are not allowed'],
    ['__proto__', 'a: {"__proto__": {x: 1}}', 'a.__proto__, line 1, column 5: a key that is never allowed'],
    [
      'constructor',
      '{"a": [{"constructor": 1}]}',
      'a[0].constructor, line 1, column 9: a key that is never allowed',
    ],
    ['prototype', 'prototype: 1', 'prototype, line 1, column 1: a key that is never allowed'],
    ['the same key twice', 'a: 1\na: 2', 'a, line 2, column 1: the same key twice'],
    ['a map as a key', '{a: 1}: 2', 'not YAML'],
    ['bytes that are not UTF-8', new Uint8Array([0x61, 0xff]), 'the document is not UTF-8'],
    [
      'a text of 64 KB and a byte',
      'a'.repeat(65_537),
      'too large (got "65537 bytes"; allowed: at most 65536 bytes)',
    ],
    ['as many bytes in fewer characters', 'é'.repeat(32_769), 'too large'],
    ['too many nodes', repeat(4_096, (i) => `k${i}: 1`), 'too many nodes'],
    // The last one is where it is seen, before anything is built of the others.
    [
      'too many empty nodes',
      repeat(20_000, () => '-'),
      'line 4097, column 1: the document has too many nodes',
    ],
    ['too many nodes in one line', `[${repeat(16_000, () => '1', ',')}]`, 'too many nodes'],
    ['brackets too deep', '['.repeat(60_000), 'line 1, column 33: the document is nested too deeply'],
    ['braces too deep', `${'{a: '.repeat(33)}1${'}'.repeat(33)}`, 'nested too deeply'],
    [
      'keys too deep',
      `a: ${'"k": '.repeat(2_000)}1`,
      'line 1, column 162: the document is nested too deeply',
    ],
    ['keys too deep in a flow', `a: {x: y${'"k": '.repeat(2_000)}, z: 1}`, 'nested too deeply'],
    ['keys too deep in a flow of lines', `a: {x: y\n${'  "k":\n'.repeat(2_000)}, z: 1}`, 'nested too deeply'],
    ['items too deep', '- '.repeat(30_000), 'nested too deeply'],
    ['indentation too deep', repeat(40, (i) => `${' '.repeat(i)}a:`), 'nested too deeply'],
    [
      'a bracket closed too often',
      '}'.repeat(60_000),
      'line 1, column 1: a bracket is closed that was never opened',
    ],
    [
      'an unquoted tunable constant',
      'when: a > tune("x", 1, min: 0)',
      'Put the whole condition in single quotes',
    ],
  ])('refuses %s', (_, text, message) => {
    expect(() => read(text)).toThrow(MillraceError);
    expect(() => read(text)).toThrow(message);
  });

  it('does not count brackets on one line as depth', () => {
    expect(read(`[${repeat(200, () => '{a: [1]}', ',')}]`)).toHaveLength(200);
  });

  it('gives the place of a character inside a scalar on one line, quoted or not', () => {
    const places = [
      'when: a > b',
      "when: 'a > b'",
      'when: "a > b"',
      'x: {when: a > b}',
      'when: |\n  a > b',
    ].map((text) => {
      const root = readSource(text, 'INVALID_POLICY');
      const map = root.kind === 'map' ? root.entries : undefined;
      const inner = map?.get('x');
      const node = map?.get('when') ?? (inner?.kind === 'map' ? inner.entries.get('when') : undefined);
      return node?.kind === 'scalar' ? node.positionOf(4).column : undefined;
    });
    expect(places).toEqual([11, 12, 12, 15, 7]);
  });
});

describe('amendSource', () => {
  it('sets and removes fields, and keeps the rest with its comments', () => {
    const text = '# head\na: 1 # one\nb: {c: x}\nd: 2\n';
    const fields = new Map<string, string | number | Record<string, number> | undefined>([
      ['a', 5],
      ['d', undefined],
      ['e', { f: 0.5 }],
    ]);
    expect(amendSource(text, fields)).toBe('# head\na: 5 # one\nb: { c: x }\ne:\n  f: 0.5\n');
  });
});

import type { Generator } from '../../src/core/random/generator.ts';
import { oneIn, pick } from './pick.ts';
import type { Tree } from './policy-tree.ts';

/** A document as text: as JSON, in YAML's flow style, or in blocks with pieces of flow. */
export function textOf(draw: Generator, tree: Tree): string {
  const style = draw.below(3);
  const text =
    style === 0 ? flow(draw, tree, 'json') : style === 1 ? flow(draw, tree, 'yaml') : block(draw, tree, 0);
  const framed = oneIn(draw, 20)
    ? `${pick(draw, ['---\n', '# comment\n', '\ufeff', '\n\n', '%YAML 1.2\n---\n'])}${text}`
    : text;
  return oneIn(draw, 8) ? framed.replaceAll('\n', '\r\n') : framed;
}

function flow(draw: Generator, tree: Tree, style: 'json' | 'yaml'): string {
  switch (tree.kind) {
    case 'map':
      return `{${tree.entries.map(([key, value]) => `${style === 'json' ? JSON.stringify(key) : quoted(draw, key)}: ${flow(draw, value, style)}`).join(', ')}}`;
    case 'list':
      return `[${tree.items.map((item) => flow(draw, item, style)).join(', ')}]`;
    case 'raw':
      return tree.text;
    default:
      return style === 'json' || typeof tree.value !== 'string'
        ? JSON.stringify(tree.value)
        : quoted(draw, tree.value);
  }
}

function block(draw: Generator, tree: Tree, indent: number): string {
  const pad = '  '.repeat(indent);
  const isEmpty =
    (tree.kind === 'map' && tree.entries.length === 0) || (tree.kind === 'list' && tree.items.length === 0);
  if (isEmpty || tree.kind === 'scalar' || tree.kind === 'raw' || (indent > 0 && oneIn(draw, 4)))
    return flow(draw, tree, 'yaml');
  const inner = (value: Tree): string => {
    const text = block(draw, value, indent + 1);
    return text.startsWith(`${pad}  `) ? `\n${text}` : ` ${text}`;
  };
  const lines =
    tree.kind === 'map'
      ? tree.entries.map(([key, value]) => `${pad}${quoted(draw, key)}:${inner(value)}`)
      : tree.items.map((item) => `${pad}-${inner(item)}`);
  return lines.join(oneIn(draw, 10) ? ' # comment\n' : '\n');
}

const WORD = /^[A-Za-z][A-Za-z0-9_-]*$/;
const TYPED = new Set(['true', 'false', 'null', 'True', 'False', 'Null', 'TRUE', 'FALSE', 'NULL']);

function quoted(draw: Generator, text: string): string {
  if (WORD.test(text) && !TYPED.has(text) && !oneIn(draw, 6)) return text;
  return /^[ -&(-~]*$/.test(text) && oneIn(draw, 2) ? `'${text}'` : JSON.stringify(text);
}

const PIECES = [
  ...[
    '&a ',
    '*a',
    '!!js/function ',
    '!!python/object:os.system ',
    '!<tag:yaml.org,2002:int> ',
    '<<: *a',
    '<<: {a: 1}',
    '? ',
    ': ',
    '- ',
  ],
  ...[
    '---\n',
    '...\n',
    '%YAML 1.1\n',
    '%TAG ! x\n',
    '\u0000',
    '\r',
    '\r\n',
    '\n',
    '\t',
    '\ufeff',
    '\u0085',
    '\u2028',
    '#',
    '|',
    '>',
    '|+9\n',
  ],
  ...[
    '"',
    "'",
    '{',
    '}',
    '[',
    ']',
    ',',
    '\\',
    '"\\u0000"',
    '"\\ud800"',
    '__proto__: {x: 1}\n',
    'constructor: 1\n',
    'prototype: 1\n',
  ],
  ...[
    '"__proto__": ',
    '{__proto__: {polluted: 1}}',
    '1e999',
    '-.inf',
    '99999999999999999999999',
    '0x',
    '[[[[[[[[',
    '{a: {a: {a: ',
    ']]]]]]]]',
  ],
  ...['- - - - - - - -', '? ? ? ? ? ?', '\u{1F600}', 'é', 'tune("', '"tune(', "''", '"""', '//', '=>'],
];

/** Bytes that are no longer what they were: flipped, cut out, put in, spliced with another document, repeated. */
export function damage(draw: Generator, text: string, other: () => string): string {
  const at = draw.below(text.length + 1);
  const until = Math.min(text.length, at + 1 + draw.below(oneIn(draw, 4) ? 200 : 6));
  const put = (inserted: string, from = at, to = at): string =>
    text.slice(0, from) + inserted + text.slice(to);
  switch (draw.below(9)) {
    case 0:
      return put(
        String.fromCharCode(text.charCodeAt(Math.min(at, text.length - 1)) ^ (1 << draw.below(8))),
        at,
        at + 1,
      );
    case 1:
      return put('', at, until);
    case 2:
      return put(text.slice(at, until).repeat(1 + draw.below(oneIn(draw, 50) ? 2_000 : 4)));
    case 3: {
      const donor = other();
      const from = draw.below(donor.length + 1);
      return put(donor.slice(from, from + draw.below(300)), at, until);
    }
    case 4:
      return text.slice(0, at);
    case 5:
      return put(pick(draw, PIECES).repeat(oneIn(draw, 60) ? 1 << draw.below(12) : 1));
    case 6:
      return put(String.fromCharCode(draw.below(oneIn(draw, 3) ? 0x10000 : 128)));
    default:
      return put(pick(draw, PIECES), at, until);
  }
}

/** Bytes as they come from a topic: now and then not UTF-8. */
export function bytesOf(draw: Generator, text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length > 0 && oneIn(draw, 60)) bytes[draw.below(bytes.length)] = 0x80 + draw.below(128);
  return bytes;
}
